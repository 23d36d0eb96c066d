//go:build interop

package redisson_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/internal/wire"
	"holdfast/rlock"
)

// A dead waiter cannot acquire the lock. This library skips one without a listener. Redisson waits
// until its score is over, but looks only when the lease ends that it saw.
func killedFairWaiterIsSkipped(t *testing.T, s *site) {
	onBoth(t, func(t *testing.T, dies, waits side) {
		const lease, left = 4 * time.Second, 5 * time.Second // until its score is over
		l, limit := both(fair).hold, left+lag
		holder, waiter := goSide.newActor(t, s), waits.newActor(t, s)
		if dies.name == javaSide.name {
			limit = locktest.Timeout
			other := s.with(t, startPeer(t), watchdogLease)
			victim := newThread(other.java, other.clients)
			acquire(t, holder, l, longLease)
			inBackground(func() error { return victim.tryLock(l, 5*time.Minute, rlock.Watchdog) })
			s.waitForWaiters(t, l, 1)
			other.java.kill(t)
		} else { // what sameOperationsLeaveTheSameBytes finds of a waiter of this library
			const dead = "0b8d9f4e-3a55-4c1e-9c57-5d1f6e0f7a11:1"
			acquire(t, holder, l, rlock.Lease(lease))
			score := fmt.Sprint(time.Now().Add(left).UnixMilli())
			queue := wire.Prefix("redisson_lock_queue", l.name())
			timeout := wire.Prefix("redisson_lock_timeout", l.name())
			s.node(t, queue).Do(t, "RPUSH", queue, dead)
			s.node(t, timeout).Do(t, "ZADD", timeout, score, dead)
		}
		dead := s.queue(t, l.name())
		start := time.Now()
		waiting := inBackground(
			func() error { return waiter.tryLock(l, time.Duration(longLease), longLease) },
		)
		locktest.Eventually(t, func() bool { return len(s.queue(t, l.name())) == 2 },
			"the waiter is not queued")
		require.Equal(t, dead, s.queue(t, l.name())[:1])
		unlock(t, holder, l)
		require.Less(t, acquired(t, waiting).Sub(start), limit, "the dead waiter was not skipped")
		unlock(t, waiter, l)
		s.requireFree(t, l)
	})
}
