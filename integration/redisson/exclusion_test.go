//go:build interop

package redisson_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
)

func excludeEachOtherAtEveryLevel(t *testing.T, s *site) {
	onEachContest(t, func(t *testing.T, contest func() contest, holds, waits side) {
		c, holder, contender := contest(), holds.newActor(t, s), waits.newActor(t, s)
		require.False(t, locked(t, contender, c.hold))

		for level := 1; level <= 3; level++ {
			acquire(t, holder, c.hold, longLease)
			require.Equal(t, level, count(t, holder, c.hold))
			s.requireLevels(t, c.hold, level)
			require.Zero(t, count(t, contender, c.hold))
			require.True(t, locked(t, contender, c.hold))
			ttl, err := contender.ttl(c.hold)
			require.NoError(t, err)
			require.Greater(t, ttl, longLease/2)
			refused(t, contender, c.want)
			require.ErrorIs(t, contender.unlock(c.want), errNotHolder)
		}
		for level := 2; level >= 0; level-- {
			refused(t, contender, c.want)
			unlock(t, holder, c.hold)
			require.Equal(t, level, count(t, holder, c.hold))
			if level > 0 {
				s.requireLevels(t, c.hold, level)
			}
		}
		if holds.name != javaSide.name || !strangersUnlock(c.hold.kind) {
			require.ErrorIs(t, holder.unlock(c.hold), errNotHolder)
		}
		s.requireFree(t, c.hold)

		acquire(t, contender, c.want, longLease)
		refused(t, holder, c.hold)
		unlock(t, contender, c.want)
		s.requireFree(t, c.want)
	})
}

// strangersUnlock reports whether Redisson lets anyone unlock a lock of that kind that is free.
func strangersUnlock(kind string) bool {
	switch kind {
	case fair:
		return strangersUnlockFairLocks.in(beside)
	case read, write:
		return strangersUnlockReadWriteLocks.in(beside)
	}
	return false
}

// requireLevels requires that a lock has one owner, with that many levels.
func (s *site) requireLevels(t testing.TB, l target, levels int) {
	t.Helper()
	for _, name := range l.names {
		owners := s.hgetall(t, name)
		delete(owners, "mode") // of a read-write lock
		require.Len(t, owners, 1)
		for owner, n := range owners {
			require.Equal(t, strconv.Itoa(levels), n, owner)
		}
	}
}

func unlockWakesTheOtherSideWithin100ms(t *testing.T, s *site) {
	alone(t, func(t *testing.T, contest func() contest, holds, waits side) {
		locktest.BestOf(t, soon, func() time.Duration {
			c := contest()
			holder, waiter := holds.newActor(t, s), waits.newActor(t, s)
			took := s.timeToWake(t, c, holder, waiter, waits)
			unlock(t, waiter, c.want)
			s.requireFree(t, c.hold)
			s.requireFree(t, c.want)
			return took
		})
	})
}

// timeToWake returns how long a waiter takes to acquire a lock after its holder has been told to
// unlock it.
func (s *site) timeToWake(t testing.TB, c contest, holder, waiter actor, waits side) time.Duration {
	t.Helper()
	acquire(t, holder, c.hold, longLease)
	waiting := waitInBackground(waiter, c.want)
	s.waitForWaiters(t, c.want, 1)
	s.letSleep(t, c.want)
	if waits.registersFor(c.want.kind) {
		s.waitForRegistrations(t, c.want, 1)
	}
	stillWaits(t, waiting)
	start := time.Now()
	unlock(t, holder, c.hold)
	return acquired(t, waiting).Sub(start)
}

// letSleep leaves waiters the time to try once more after they have subscribed, and to go to sleep.
// An actor that is not in the test waits in vain meanwhile.
func (s *site) letSleep(t testing.TB, l target) {
	t.Helper()
	err := goSide.newActor(t, s).tryLock(l, 200*time.Millisecond, longLease)
	if !noReply(err) { // the machine is busy
		require.ErrorIs(t, err, errRefused)
	}
}

// Redisson's spin lock is the plain lock without messages: its waiters ask again and again, and its
// release is not announced.
func spinLockOfRedissonExcludesReentrantLock(t *testing.T, s *site) {
	onBoth(t, func(t *testing.T, holds, _ side) {
		ours := target{reentrant, []string{newName()}}
		spinning := target{spin, ours.names}
		java, holdfast := newJavaActor(t, s), newGoActor(t, s)
		if holds.name == javaSide.name {
			acquire(t, java, spinning, longLease)
			refused(t, holdfast, ours)
			waiting := inBackground(
				func() error { return holdfast.tryLock(ours, asksAgain, longLease) })
			s.waitForWaiters(t, ours, 1)
			start := time.Now()
			unlock(t, java, spinning)
			// Waiters of this library ask at least every 5 s.
			require.Less(t, acquired(t, waiting).Sub(start), asksAgain)
			unlock(t, holdfast, ours)
		} else {
			acquire(t, holdfast, ours, longLease)
			refused(t, java, spinning)
			waiting := waitInBackground(java, spinning)
			unlock(t, holdfast, ours)
			acquired(t, waiting)
			unlock(t, java, spinning)
		}
		s.requireFree(t, ours)
	})
}
