//go:build interop

package redisson_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
)

func redLocksExcludeEachOther(t *testing.T, s *site) {
	onBoth(t, func(t *testing.T, holds, waits side) {
		l := both(red).hold
		holder, contender := holds.newActor(t, s), waits.newActor(t, s)
		acquire(t, holder, l, longLease)
		for _, node := range s.nodes {
			locktest.Eventually(t, func() bool {
				return len(node.DoMap(t, "HGETALL", l.name())) == 1
			}, "a node has no part")
		}
		refused(t, contender, l)
		unlock(t, holder, l)
		// The last node may be released in the background.
		require.NoError(t, contender.tryLock(l, locktest.Timeout, longLease))
		refused(t, holder, l)
		unlock(t, contender, l)
		for _, node := range s.nodes {
			locktest.Eventually(t, func() bool {
				return node.DoInt(t, "EXISTS", l.name()) == 0
			}, "a node keeps its part")
		}
	})
}

func unlockOfARedLockWakesTheOtherSideWithin100ms(t *testing.T, s *site) {
	for _, d := range directions {
		t.Run(d.name, func(t *testing.T) {
			locktest.BestOf(t, soon, func() time.Duration {
				holder, waiter := d.holds.newActor(t, s), d.waits.newActor(t, s)
				l := both(red).hold
				took := s.timeToWake(t, contest{l, l}, holder, waiter, d.waits)
				unlock(t, waiter, l)
				return took
			})
		})
	}
}
