//go:build redis

package lua_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/lua"
)

func TestReplicaIsRefusedForGood(t *testing.T) {
	s, c := start(t, redistest.WithArgs("--replicaof", "127.0.0.1", "1")) // no server listens there
	_, err := lockPlain(t.Context(), c, lock, me, lease)
	e := requireError(t, err, lua.ClassPermanent, "READONLY")
	require.Contains(t, e.Advice, "connect to the master")
	requireFree(t, s, lock)
}

func TestReplicaWithoutItsMasterIsRefusedForNow(t *testing.T) {
	s, c := start(t, redistest.WithArgs("--replicaof", "127.0.0.1", "1"))
	s.Do(t, "CONFIG", "SET", "replica-serve-stale-data", "no")
	for _, o := range operations {
		requireError(t, o.run(t.Context(), c), lua.ClassTemporary, "MASTERDOWN")
	}
}

func TestServerWithTooFewReplicasIsRefusedForNow(t *testing.T) {
	s, c := start(t)
	hold(t, s, lock, me, "2", lease)
	s.Do(t, "CONFIG", "SET", "min-replicas-to-write", "1")
	_, err := lockPlain(t.Context(), c, "another", me, lease)
	requireError(t, err, lua.ClassTemporary, "NOREPLICAS")
	for _, count := range []int{1, 0} {
		_, err = unlock(t.Context(), c, lock, me, count)
		requireError(t, err, lua.ClassTemporary, "NOREPLICAS")
	}
	requireLock(t, s, lock, map[string]string{me: "2"}, lease)
}

func TestServerBusyWithAScriptIsRefusedForNow(t *testing.T) {
	s, c := start(t, redistest.WithArgs("--lua-time-limit", "1"))
	ended := make(chan error, 1)
	go func() {
		_, err := s.Call("EVAL", "while true do end", "0")
		ended <- err
	}()
	require.Eventually(t, func() bool {
		_, err := s.Call("PING")
		return err != nil && strings.HasPrefix(err.Error(), "BUSY")
	}, eventually, poll)
	for _, o := range operations {
		requireError(t, o.run(t.Context(), c), lua.ClassTemporary, "BUSY")
	}
	s.Do(t, "SCRIPT", "KILL")
	require.Error(t, <-ended)
	holder, err := lockPlain(t.Context(), c, lock, me, lease)
	require.NoError(t, err)
	require.Nil(t, holder)
}

func TestServerThatLoadsItsDataIsRefusedForNow(t *testing.T) {
	t.Parallel()
	master := redistest.Start(
		t,
		redistest.WithHostNetwork(),
		redistest.WithArgs("--repl-diskless-sync-delay", "0"),
	)
	for i := range 60 {
		master.Do(t, "SET", fmt.Sprintf("key:%d", i), strings.Repeat("x", 512<<10))
	}
	master.Do(t, "CONFIG", "SET", "rdbcompression", "no")
	// A replica takes 50 ms to load each key, and checks its connections every 2 MB.
	s, c := start(t, redistest.WithHostNetwork(), redistest.WithArgs("--key-load-delay", "50000"))
	host, port, _ := strings.Cut(master.Addr(), ":")
	s.Do(t, "REPLICAOF", host, port)
	require.Eventually(t, func() bool {
		_, err := s.Call("GET", "k")
		return err != nil && strings.HasPrefix(err.Error(), "LOADING")
	}, eventually, poll)
	_, err := lockPlain(t.Context(), c, lock, me, lease)
	requireError(t, err, lua.ClassTemporary, "LOADING")
}

func TestServerThatDoesNotReplyInTimeIsAnUnknownOutcome(t *testing.T) {
	s, c := start(t)
	s.Pause(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := lockPlain(ctx, c, lock, me, lease)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	e := requireError(t, err, lua.ClassUnknown, "")
	require.Contains(t, e.Advice, "did not reply in time")
}
