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

func TestGoroutineThatWaitsForItselfIsLoggedAtOnceWithDebug(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for _, debug := range []bool{true, false} {
		var log logtest.Lines
		c := newClient(t, s, rlock.Options{Debug: debug, Logger: log.Logger()})
		try := func(wait time.Duration) {
			_, err := c.NewLock("order").TryLock(t.Context(), wait, longLease)
			require.ErrorIs(t, err, rlock.ErrNotAcquired)
		}
		hold := take(t, c.NewLock("order"), longLease)
		done := make(chan struct{})
		go func() {
			defer close(done)
			try(500 * time.Millisecond) // another goroutine
		}()
		receive(t, done, "still waits")
		try(rlock.NoWait)
		require.Empty(t, log.With("holds itself"))
		try(500 * time.Millisecond)
		unlock(t, hold)
		closeClient(t, c)
		lines := log.With("holds itself")
		require.Equal(t, debug, len(lines) == 1, lines)
		if debug {
			require.Contains(t, lines[0], "pass its hold.Context() down")
			require.Regexp(t, `"waits at"="?\S+heldby_process_redis_test\.go:\d+`, lines[0])
		}
	}
}
