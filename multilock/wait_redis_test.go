//go:build redis

package multilock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/rlock"
)

func TestOneWaitIsForAllParts(t *testing.T) {
	t.Parallel()
	p := startPair(t, rlock.Options{})
	for name, locks := range shapes(p) {
		t.Run(name, func(t *testing.T) {
			const wait = 6 * time.Second
			// The first becomes free in the middle of the wait; the rest of the wait is for the
			// second.
			takeWith(t.Context(), t, locks[0], wait/2)
			second := takeWith(t.Context(), t, locks[1], longLease)
			start := time.Now()
			_, err := of(locks).TryLock(t.Context(), wait, longLease)
			took := time.Since(start)
			require.ErrorIs(t, err, rlock.ErrNotAcquired)
			require.NotErrorIs(t, err, context.DeadlineExceeded)
			var held *rlock.HeldError
			require.ErrorAs(t, err, &held)
			require.Equal(t, "b", held.Lock)
			require.GreaterOrEqual(t, took, wait)
			require.Less(t, took, wait+wait/3, "the parts share one wait")
			unlock(t, second)
			waitUntilFree(t, p.first, p.second)
		})
	}
}
