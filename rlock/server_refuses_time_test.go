//go:build redis

package rlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/logtest"
	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// startClockless starts a server that refuses TIME, also to scripts, as some managed services do.
func startClockless(t *testing.T) *redistest.Server {
	t.Helper()
	return redistest.Start(t, redistest.WithArgs("--rename-command", "TIME", ""))
}

func TestServerThatRefusesTimeToScriptsHasNoHandOversAndTheLogSaysSoOnce(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		if !k.grants {
			continue
		}
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			s := startClockless(t)
			var log logtest.Lines
			c := newClient(t, s, rlock.Options{Logger: log.Logger()})
			other := newClient(t, s, rlock.Options{})
			for name, from := range map[string]*rlock.Client{"a": c, "b": other} {
				hold := take(t, k.lock(from, name), rlock.Watchdog)
				waiter := k.parked(t, s, k.lock(c, name)) // which may be woken by either
				start := time.Now()
				unlock(t, hold)
				o := result(t, waiter)
				require.NoError(t, o.Err)
				require.Less(t, o.At.Sub(start), promptly, "it was not woken")
				unlock(t, o.Hold)
				requireFree(t, s, name)
			}
			eventually(t, func() bool { return len(log.With("level=WARN")) > 0 }, "no warning")
			require.Len(t, log.With("level=WARN"), 1)
			require.Contains(t, log.With("level=WARN")[0],
				"this server refuses scripts a command that hand-overs need")
			require.Contains(t, log.With("level=WARN")[0], "command called from")
		})
	}
}

func TestLocksThatNeedTheClockOfTheServerSaySoWhereItIsRefused(t *testing.T) {
	t.Parallel()
	s := startClockless(t)
	c := newClient(t, s, rlock.Options{})
	requireRefusedAtOnce(t, c.NewFairLock("fair"), "NOCOMMAND")
	_, err := c.NewFairLock("fair").TryLock(t.Context(), rlock.NoWait, longLease)
	require.ErrorContains(t, err, "fair locks and redlock.Options.Epoch need TIME")
	requireFree(t, s, "fair")
}

func TestReadersStepBackForAWriterWithoutTheClockOfTheServer(t *testing.T) {
	t.Parallel()
	s := startClockless(t)
	c := newClient(t, s, rlock.Options{WatchdogLease: 3 * time.Second}) // readers may pass after that
	reading := take(t, newReadLock(c, "page"), longLease)
	writer := lockInBackground(t.Context(), newWriteLock(c, "page"), longLease)
	eventually(t, func() bool { return exists(s, "holdfast_rwlock_writer:{page}") },
		"no writer waits")
	_, err := newReadLock(c, "page").TryLock(t.Context(), rlock.NoWait, longLease)
	require.ErrorIs(t, err, rlock.ErrNotAcquired)
	start := time.Now()
	unlock(t, acquired(t, lockInBackground(t.Context(), newReadLock(c, "page"), longLease)))
	require.Less(t, time.Since(start), longWait)
	unlock(t, reading)
	unlock(t, acquired(t, writer))
	requireFree(t, s, "page")
}
