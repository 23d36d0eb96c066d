//go:build interop

package redisson_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/rlock"
	"holdfast/watchdog"
)

func forceUnlockByTheOtherSideEndsTheHold(t *testing.T, s *site) {
	onEachContest(t, func(t *testing.T, contest func() contest, holds, waits side) {
		c, holder, contender := contest(), holds.newActor(t, s), waits.newActor(t, s)
		acquire(t, holder, c.hold, rlock.Watchdog)
		waiting := waitInBackground(waits.newActor(t, s), c.want)
		s.waitForWaiters(t, c.want, 1)
		s.letSleep(t, c.want)
		ended := make(chan time.Time, 1)
		if holder, ok := holder.(*goActor); ok {
			hold := holder.last
			go func() { <-hold.Done(); ended <- time.Now() }()
		}
		start := time.Now()
		require.NoError(t, contender.forceUnlock(c.hold))
		// Otherwise it would sleep until the end of the lease, but at most five seconds.
		require.Less(t, acquired(t, waiting).Sub(start), told)

		if holder, ok := holder.(*goActor); ok {
			// Its next renewal, after a third of the lease, finds out.
			end := locktest.Receive(t, ended, "the hold has not ended")
			require.ErrorIs(t, holder.last.Err(), rlock.ErrLost)
			require.ErrorIs(t, holder.last.Err(), watchdog.ErrGone)
			require.Less(t, end.Sub(start), watchdogLease*5/6)
		}
		require.Zero(t, count(t, holder, c.hold))
		refused(t, holds.newActor(t, s), c.hold)
		require.ErrorIs(t, holder.unlock(c.hold), errNotHolder)
	})
}
