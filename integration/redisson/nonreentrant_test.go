//go:build interop

package redisson_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// An owner that asks again is refused at once, even if it would wait, and is not queued.
func nonReentrantLocksRefuseTheirOwnersOnBothSides(t *testing.T, s *site) {
	for _, kind := range existing(nonReentrant, nonReentrantFair) {
		onBoth(t, func(t *testing.T, holds, waits side) {
			l := both(kind).hold
			holder, waiter := holds.newActor(t, s), waits.newActor(t, s)
			acquire(t, holder, l, longLease)
			require.ErrorIs(t, holder.tryLock(l, 0, longLease), errReenters)
			require.ErrorIs(t, holder.lock(l, longLease), errReenters)
			s.requireLevels(t, l, 1)
			refused(t, waiter, l)

			waiting := waitInBackground(waiter, l)
			s.waitForWaiters(t, l, 1)
			unlock(t, holder, l)
			acquired(t, waiting)
			unlock(t, waiter, l)
			require.ErrorIs(t, waiter.unlock(target{nonReentrant, l.names}), errNotHolder)
			s.requireFree(t, l)
		})
	}
}

func queueOfBothFairLocksIsServedInOrder(t *testing.T, s *site) {
	queueIsServedInOrder(t, s, existing(fair, nonReentrantFair)...)
}
