package locks_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/cmd/holdfast/internal/locks"
	"holdfast/internal/redistest"
)

func TestMain(m *testing.M) { redistest.VerifyMain(m) }

// java is an owner as Redisson names it, with the id of a thread.
const java = "8743c9c0-0795-4907-87fd-6c719a6b4586:54"

func TestListEndsWithItsContext(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for i := range 1000 {
		s.Do(t, "SET", fmt.Sprint("key", i), "x")
	}
	s.Do(t, "HSET", "lock", java, "1")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	q := locks.Query{Count: 1, Interval: time.Hour}
	time.AfterFunc(50*time.Millisecond, cancel)
	failures := 0
	for _, err := range locks.List(ctx, s.Client(t), q) {
		if err != nil {
			failures++
			require.ErrorIs(t, err, context.Canceled)
		}
	}
	require.Equal(t, 1, failures)
}

func TestListReadsEachClientOnce(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for i := range 500 {
		s.Do(t, "HSET", fmt.Sprint("lock", i), java, "1")
	}
	s.ResetStats(t)
	found := 0
	for _, err := range locks.List(t.Context(), s.Client(t), locks.Query{Count: 10}) {
		require.NoError(t, err)
		found++
	}
	require.Equal(t, 500, found)
	stats := s.CommandStats(t)
	require.Equal(t, 2*500+1, stats["hrandfield"], "two of each lock, one of their client")
	require.Zero(t, stats["keys"]+stats["hgetall"])
}

func TestUnlockChangesNothingIfTheLockIsNotHeldSo(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	redis := s.Client(t)
	s.Do(t, "HSET", "lock", java, "1")
	seen, err := locks.Inspect(t.Context(), redis, "lock")
	require.NoError(t, err)
	var changed *locks.ChangedError
	_, _, err = locks.Unlock(t.Context(), redis, seen, java+"5")
	require.ErrorAs(t, err, &changed)
	require.Equal(t, java, changed.Now.Holders[0].Owner)

	s.Do(t, "DEL", "lock")
	s.Do(t, "HSET", "lock", java+"5", "1")
	for _, owner := range []string{"", java} {
		_, _, err = locks.Unlock(t.Context(), redis, seen, owner)
		require.ErrorAs(t, err, &changed)
		require.Equal(t, java+"5", changed.Now.Holders[0].Owner)
	}
	require.Equal(t, []string{java + "5"}, s.DoStrings(t, "HKEYS", "lock"))
	_, _, err = locks.Unlock(t.Context(), redis, changed.Now, "")
	require.NoError(t, err)
	require.Zero(t, s.DoInt(t, "DBSIZE"))
}
