//go:build unix

package main

import (
	"encoding/json"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
)

func TestRunTakesACommandForAShellAsFlockDoes(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	for _, args := range [][]string{
		{"job", "-c", "echo a | tr a b; exit 3"}, {"-c", "echo a | tr a b; exit 3", "job"},
		{"--shell", "job", "--", "echo a | tr a b;", "exit 3"},
	} {
		require.Equal(t, outcome{stdout: "b\n", status: 3}, ranUnder(t, redis, args...), "%v", args)
	}
	o := ranUnder(t, redis, "job", "-c", "true", "--", "false")
	require.Equal(t, 64, o.status)
	require.Contains(t, o.stderr, "exclude each other")
}

func TestRunShowsItsLabel(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	j := startRun(t, redis.Addr(), append([]string{"--label", "nightly\x1b backup"}, forEver()...)...)
	j.line(t, "in")
	o := ranUnder(t, redis, "-n", "job", "true")
	require.Contains(t, o.stderr, `held by nightly\x1b backup on `)
	for _, command := range []string{"ls", "inspect"} {
		o := run(t, append([]string{command, "-r", redis.Addr()}, "job")...)
		require.Contains(t, o.stdout, `nightly\x1b backup`, command)
	}
	j.signal(t, syscall.SIGTERM)
	j.dead(t)
}

func TestOthersSeeSinceWhenARunHoldsTheLock(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	began := time.Now().Truncate(time.Millisecond)
	j := startRun(t, redis.Addr(), forEver()...)
	j.line(t, "in")
	var lock struct{ Holders []struct{ Since time.Time } }
	require.Eventually(t, func() bool { // the command does not wait for the note
		o := run(t, "inspect", "--json", "-r", redis.Addr(), "job")
		require.NoError(t, json.Unmarshal([]byte(o.stdout), &lock))
		return !lock.Holders[0].Since.IsZero()
	}, longest, time.Millisecond)
	require.WithinRange(t, lock.Holders[0].Since, began, time.Now())
	require.Contains(t, run(t, "inspect", "-r", redis.Addr(), "job").stdout, ", held for ")
	require.Contains(t, run(t, "ls", "-r", redis.Addr()).stdout, " HELD ")
	j.signal(t, syscall.SIGTERM)
	j.dead(t)
	j.status(t)
	requireFree(t, redis)
}

func TestRunWaitsForReplicas(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	o := ranUnder(t, redis, "--sync-replicas", "1", "-w", "3", "job", "false")
	require.Equal(t, 74, o.status)
	require.Contains(t, o.stderr, "only 0 of 1 replicas")
	require.NotContains(t, o.stderr, "Options.")
	o = ranUnder(t, redis, "--sync-replicas", "connected", "job", "true")
	require.Zero(t, o.status)
	require.Contains(t, o.stderr, "pass --sync-replicas 1 to")
	requireFree(t, redis)
}

// A server of a quorum that has just started may have forgotten a lock, unless it never forgets.
func TestRunCountsARestartedServerAtOnceIfItForgetsNothing(t *testing.T) {
	t.Parallel()
	flags := append(servers(redistest.StartAll(t, 3)), "--quorum", "--lease", "10m", "-n", "job")
	o := run(t, append(append([]string{"run"}, flags...), "true")...)
	require.NotZero(t, o.status)
	require.Contains(t, o.stderr, "pass --fsync-always")
	o = run(t, append(append([]string{"run", "--fsync-always"}, flags...), "true")...)
	require.Equal(t, outcome{}, o)
}
