//go:build interop

package redisson_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/rlock"
)

const (
	// lag is how much later than the end of a lease a waiter may acquire the lock. Redis removes a
	// key when it is read.
	lag = 3 * time.Second
	// early bounds the differences between the clocks of two processes and Redis, and the time of
	// an acquisition.
	early = 20 * time.Millisecond
)

// duel is a contest that one side holds and the other waits for.
type duel struct {
	contest
	name           string
	holder, waiter actor
	since          time.Time // the earliest start of its lease
	waiting        <-chan outcome
}

// endsOfLeases returns the contests in which a waiter of that side notices the end of a lease.
func endsOfLeases(waits side) []namedContest {
	return slices.DeleteFunc(slices.Clone(contests), func(c namedContest) bool {
		return c.name == fair && waits.name == javaSide.name && fairWaitersOversleep.in(beside)
	})
}

// newDuels has one side acquire the locks of the contests.
func newDuels(t testing.TB, s *site, contests []namedContest, holds, waits side,
	lease rlock.Lease) []*duel {
	t.Helper()
	duels := make([]*duel, len(contests))
	for i, c := range contests {
		d := &duel{contest: c.make(), name: c.name, holder: holds.newActor(t, s),
			waiter: waits.newActor(t, s)}
		d.since = time.Now()
		acquire(t, d.holder, d.hold, lease)
		duels[i] = d
	}
	return duels
}

// wait has the other side wait for every lock.
func wait(duels []*duel) {
	for _, d := range duels {
		d.waiting = waitInBackground(d.waiter, d.want)
	}
}

func lockIsAcquiredWhenTheLeaseOfTheOtherSideEnds(t *testing.T, s *site) {
	onBoth(t, func(t *testing.T, holds, waits side) {
		const lease = 1500 * time.Millisecond
		duels := newDuels(t, s, endsOfLeases(waits), holds, waits, rlock.Lease(lease))
		wait(duels)
		for _, d := range duels {
			got := acquired(t, d.waiting, d.name).Sub(d.since)
			require.Greater(t, got, lease-early, d.name)
			require.Less(t, got, lease+lag, d.name)
			require.ErrorIs(t, d.holder.unlock(d.hold), errNotHolder, d.name)
			require.Zero(t, count(t, d.holder, d.hold), d.name)
			refused(t, d.holder, d.hold)
			unlock(t, d.waiter, d.want)
		}
	})
}

// A Java waiter learns that the lock is taken for less than the lease that it knows.
func releasedLockStaysTakenForJavaUntilAtLeast(t *testing.T, s *site) {
	const atLeast = 1500 * time.Millisecond
	for _, c := range endsOfLeases(javaSide) {
		l := c.make()
		if l.hold.kind == read || l.hold.kind == multi || l.want.kind == multi {
			continue
		}
		holder, waiter := newGoActor(t, s).(*goActor), newJavaActor(t, s)
		lock := rlock.AtLeast(lockerOf(holder.clients, l.hold), atLeast)
		lease := rlock.Lease(time.Hour)
		if l.hold.kind == write {
			// The message of a write lock wakes only those threads of Redisson that sleep already. A thread
			// that is about to sleep sleeps until the lease should have ended.
			lease = rlock.Lease(2 * atLeast)
		}
		since := time.Now()
		hold, err := lock.TryLock(holder.ctx, rlock.NoWait, lease)
		require.NoError(t, err, c.name)
		waiting := waitInBackground(waiter, l.want)
		if channel := l.want.channels()[0]; !l.want.queues() {
			locktest.Eventually(t, func() bool { return s.listeners(t, channel) > 0 }, "Java does not wait")
		}
		require.NoError(t, hold.Unlock(), c.name)
		require.Greater(t, acquired(t, waiting, c.name).Sub(since), atLeast-early, c.name)
		unlock(t, waiter, l.want)
		s.requireFree(t, l.want)
	}
}

func watchdogsKeepLocksFromTheOtherSide(t *testing.T, s *site) {
	onBoth(t, func(t *testing.T, holds, waits side) {
		duels := newDuels(t, s, contests, holds, waits, rlock.Watchdog)
		for _, d := range duels {
			d.waiting = inBackground(func() error {
				return d.waiter.tryLock(d.want, watchdogLease*5/2, longLease)
			})
		}
		for _, d := range duels {
			o := <-d.waiting
			require.ErrorIs(t, o.err, errRefused, d.name)
			require.Greater(t, o.at.Sub(d.since), 2*watchdogLease, d.name)
		}
		wait(duels)
		for _, d := range duels {
			require.Equal(t, 1, count(t, d.holder, d.hold), d.name)
			unlock(t, d.holder, d.hold)
			acquired(t, d.waiting, d.name)
			unlock(t, d.waiter, d.want)
			s.requireFree(t, d.hold)
		}
	})
}
