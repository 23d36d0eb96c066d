//go:build !race

package multilock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/multilock"
	"holdfast/rlock"
)

// waitForPart has an acquisition of all locks wait for one that another owner holds.
func waitForPart(
	ctx context.Context, t *testing.T, locks []*rlock.Lock, i int, lease rlock.Lease,
) (theirs *rlock.Hold, waiter <-chan locktest.Outcome) {
	t.Helper()
	theirs = take(t, locks[i], rlock.Lease(time.Hour))
	waiter = lockInBackground(ctx, of(locks), lease)
	synctest.Wait()
	return theirs, waiter
}

func TestReleaseOfAPartWakesTheWaiterForAllAndTheReleaseOfAllTheOneForAPart(t *testing.T) {
	t.Parallel()
	inShapes(t, func(t *testing.T, p *pair, locks []*rlock.Lock) {
		for i := range locks {
			theirs, waiter := waitForPart(t.Context(), t, locks, i, longLease)
			start := time.Now()
			unlock(t, theirs)
			hold := acquired(t, waiter)
			waiter = lockInBackground(t.Context(), locks[i], longLease)
			synctest.Wait()
			unlock(t, hold)
			unlock(t, acquired(t, waiter))
			require.Less(t, time.Since(start), time.Second)
		}
		p.requireFree(t)
	})
}

func TestOneWaitIsForAllParts(t *testing.T) {
	t.Parallel()
	inShapes(t, func(t *testing.T, p *pair, locks []*rlock.Lock) {
		const wait = 6 * time.Second
		// The first becomes free in the middle of the wait.
		take(t, locks[0], rlock.Lease(wait/2))
		theirs := take(t, locks[1], longLease)
		start := time.Now()
		_, err := of(locks).TryLock(t.Context(), wait, longLease)
		require.Equal(t, wait, time.Since(start))
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		var held *rlock.HeldError
		require.ErrorAs(t, err, &held)
		require.Equal(t, "b", held.Lock)
		unlock(t, theirs)
		p.requireFree(t)
	})
}

// The wait takes several times as long as the lease, because another owner holds b or its server
// hangs.
func TestPartIsKeptWhileAnotherIsWaitedForAndNeverForLongerThanTheLease(t *testing.T) {
	t.Parallel()
	const lease = 3 * time.Second
	inPair(t, rlock.Options{}, func(t *testing.T, p *pair) {
		for _, hangs := range []bool{false, true} {
			lock := multilock.New(p.client.NewLock("a"), p.another.NewLock("b"), p.another.NewLock("c"))
			unlock(t, take(t, lock, longLease))
			var theirs *rlock.Hold
			if hangs {
				p.second.Pause(t)
			} else {
				theirs = take(t, p.another.NewLock("b"), longLease)
			}
			waiter := inBackground(func() (*rlock.Hold, error) {
				return lock.TryLock(t.Context(), time.Minute, rlock.Lease(lease))
			})
			for range 200 {
				time.Sleep(lease / 20)
				left := p.lasts(t)
				require.Positive(t, left)
				require.LessOrEqual(t, left, lease)
			}
			if hangs {
				p.second.Resume(t)
			} else {
				unlock(t, theirs)
			}
			hold := acquired(t, waiter)
			require.True(t, hold.Valid())
			unlock(t, hold)
			time.Sleep(lease)
			p.requireFree(t)
		}
	})
}

// In less than a third of the lease nothing need be renewed. The hold must not be shorter for it.
func TestAllPartsHaveTheLeaseThatWasAskedForWhenAllAreHeld(t *testing.T) {
	t.Parallel()
	inShapes(t, func(t *testing.T, p *pair, locks []*rlock.Lock) {
		const lease = 10 * time.Second
		for i := 1; i < len(locks); i++ {
			theirs, waiter := waitForPart(t.Context(), t, locks, i, rlock.Lease(lease))
			time.Sleep(time.Second)
			unlock(t, theirs)
			hold := acquired(t, waiter)
			require.Greater(t, time.Until(hold.Deadline()), lease*97/100)
			require.Greater(t, p.lasts(t), lease*97/100)
			require.LessOrEqual(t, p.lasts(t), lease)
			unlock(t, hold)
			p.requireFree(t)
		}
	})
}

func TestPartThatIsLostWhileAnotherIsWaitedForFailsTheAcquisition(t *testing.T) {
	t.Parallel()
	inShapes(t, func(t *testing.T, p *pair, locks []*rlock.Lock) {
		owner := rlock.WithOwner(t.Context())
		for how, lose := range map[string]func(){
			"force-unlocked": func() {
				_, err := locks[0].ForceUnlock(t.Context())
				require.NoError(t, err)
			},
			"released separately": func() { require.NoError(t, locks[0].Unlock(owner)) },
			"it is gone":          func() { p.first.Do(t, "DEL", "a") }, // a renewal finds out
		} {
			for _, lease := range []rlock.Lease{rlock.Watchdog, rlock.Lease(30 * time.Second)} {
				theirs, waiter := waitForPart(owner, t, locks, 1, lease)
				lose()
				err := result(t, waiter).Err
				if how == "it is gone" {
					how = ""
				}
				requireLost(t, err, "a", how)
				require.ErrorContains(t, err, "lost while waiting for another lock")
				require.NotContains(t, err.Error(), "was not released")
				unlock(t, theirs)
				time.Sleep(time.Second)
				p.requireFree(t)
			}
		}
	})
}

// Nothing asks about the first part until the last one is held: it was lost after the last renewal.
func TestPartThatAnotherHoldsByTheEndFailsTheAcquisition(t *testing.T) {
	t.Parallel()
	inShapes(t, func(t *testing.T, p *pair, locks []*rlock.Lock) {
		for _, lease := range []rlock.Lease{rlock.Watchdog, rlock.Lease(20 * time.Second)} {
			theirs, waiter := waitForPart(t.Context(), t, locks, 1, lease)
			time.Sleep(300 * time.Millisecond) // a part acquired just now is not checked again
			p.first.Do(t, "DEL", "a")
			other := take(t, p.client.NewLock("a"), longLease)
			unlock(t, theirs)
			requireLost(t, result(t, waiter).Err, "a", "")
			require.Equal(t, []string{"a"}, left(t, p.first, p.second))
			require.True(t, other.Valid())
			unlock(t, other)
		}
	})
}

func TestCloseOfTheClientOfAPartThatIsHeldEndsTheWaitForAnother(t *testing.T) {
	t.Parallel()
	inPair(t, rlock.Options{}, func(t *testing.T, p *pair) {
		mine, another := p.clients(t, rlock.Options{})
		locks := []*rlock.Lock{mine.NewLock("a"), another.NewLock("b")}
		theirs, waiter := waitForPart(t.Context(), t, locks, 1, longLease)
		closeClient(t, mine)
		err := result(t, waiter).Err
		require.ErrorIs(t, err, rlock.ErrClosed)
		require.NotErrorIs(t, err, rlock.ErrLost)
		require.ErrorContains(t, err, "lost while waiting for another lock")
		require.ErrorContains(t, err, `lock "a"`)
		unlock(t, theirs)
		p.requireFree(t)
	})
}

// One call of the owner keeps the session of b locked while it waits for b, and a MultiLock of a
// and b waits for that session. Neither blocks a.
func TestMultiLockThatWaitsForTheSessionOfAPartBlocksNoOther(t *testing.T) {
	t.Parallel()
	inPair(t, rlock.Options{}, func(t *testing.T, p *pair) {
		a, b := p.client.NewLock("a"), p.client.NewLock("b")
		theirs := take(t, b, longLease)
		owner := rlock.WithOwner(t.Context())
		hold := takeWith(owner, t, a, longLease)
		alone := lockInBackground(owner, b, longLease)
		synctest.Wait()
		both := lockInBackground(owner, multilock.New(a, b), longLease)
		synctest.Wait()
		start := time.Now()
		require.NoError(t, hold.Extend(t.Context(), longLease))
		unlock(t, hold)
		require.Zero(t, time.Since(start))
		_, err := multilock.New(a, b).TryLock(owner, 200*time.Millisecond, longLease)
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
		require.Less(t, time.Since(start), 250*time.Millisecond, "the wait is not exceeded")
		require.Empty(t, alone)
		require.Empty(t, both)
		unlock(t, theirs)
		unlock(t, acquired(t, alone))
		unlock(t, acquired(t, both))
		p.requireFree(t)
	})
}
