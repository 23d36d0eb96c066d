package rlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// sooner is how long a woken waiter may take. One that must ask by itself may take 5 s, and a queue
// entry whose waiter left stays for minutes.
const sooner = promptly

// fairWaiter is a goroutine that waits for the fair lock "job".
type fairWaiter struct {
	done  <-chan outcome
	leave context.CancelFunc
}

func TestFairLockAlternatesBetweenClientsInTheirOrder(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	a := newClient(t, s, rlock.Options{}).NewFairLock("job")
	b := newClient(t, s, rlock.Options{}).NewFairLock("job")
	hold := take(t, a, longLease)
	waiters := waitInTurn(t, s, a, b, b, a, b, a)
	for i, w := range waiters {
		within(t, sooner, func() {
			unlock(t, hold)
			hold = acquired(t, w.done)
		})
		for _, later := range waiters[i+1:] {
			require.Empty(t, later.done)
		}
	}
	unlock(t, hold)
	requireNothingFairLeft(t, s)
}

func TestReleaserThatWantsAFairLockAgainComesLast(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	lock := newClient(t, s, rlock.Options{}).NewFairLock("job")
	hold := take(t, lock, longLease)
	waiter := waitInTurn(t, s, lock)[0]
	unlock(t, hold)
	again := lockInBackground(t.Context(), lock, longLease)
	hold = acquired(t, waiter.done)
	require.Empty(t, again)
	unlock(t, hold)
	unlock(t, acquired(t, again))
}

func TestFairAttemptWithoutWaitStepsBackForTheQueue(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	lock := newClient(t, s, rlock.Options{}).NewFairLock("job")
	plantHead(t, s, "java:1")
	_, err := lock.TryLock(t.Context(), rlock.NoWait, longLease)
	var held *rlock.HeldError
	require.ErrorAs(t, err, &held)
	require.Equal(t, "java:1", held.Owner)
	require.True(t, held.Next, "it is the next, not the holder")
	require.EqualValues(t, 1, s.DoInt(t, "LLEN", fairQueue))
	require.True(t, absent(s, "job"))
}

func TestFairQueueIsShownByInfo(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	lock := newClient(t, s, rlock.Options{}).NewFairLock("job")
	hold := take(t, lock, longLease)
	plantHead(t, s, "java:1")
	waiter := waitInTurn(t, s, lock)[0]
	info, err := lock.Info(t.Context())
	require.NoError(t, err)
	require.Equal(t, hold.Owner(), info.Owner)
	require.Len(t, info.Queue, 2)
	require.Equal(t, "java:1", info.Queue[0])
	waiter.leave()
	require.Error(t, result(t, waiter.done).Err)
	unlock(t, hold)
}

func TestFairWaitersThatGiveUpLeaveTheQueueAtOnce(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	lock := newClient(t, s, rlock.Options{}).NewFairLock("job")
	hold := take(t, lock, longLease)
	waiters := waitInTurn(t, s, lock, lock, lock)
	queue := waitForFairQueue(t, s, 3)

	within(t, sooner, func() {
		waiters[1].leave() // from the middle
		require.ErrorIs(t, result(t, waiters[1].done).Err, context.Canceled)
		require.Equal(t, []string{queue[0], queue[2]}, waitForFairQueue(t, s, 2))
	})
	within(t, sooner, func() {
		waiters[0].leave() // the head
		require.ErrorIs(t, result(t, waiters[0].done).Err, context.Canceled)
		require.Equal(t, []string{queue[2]}, waitForFairQueue(t, s, 1))
	})
	const wait = 500 * time.Millisecond
	within(t, wait+sooner, func() {
		_, err := lock.TryLock(t.Context(), wait, longLease)
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
		require.Equal(t, []string{queue[2]}, waitForFairQueue(t, s, 1))
	})
	within(t, sooner, func() {
		unlock(t, hold)
		unlock(t, acquired(t, waiters[2].done))
	})
	requireNothingFairLeft(t, s)
}

// The message may be on its way to a waiter that leaves. Then the next one must be woken.
func TestFairHeadThatLeavesWhenItIsWokenPassesItsTurnOn(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	lock := newClient(t, s, rlock.Options{}).NewFairLock("job")
	for range 20 {
		hold := take(t, lock, longLease)
		waiters := waitInTurn(t, s, lock, lock)
		within(t, sooner, func() {
			go waiters[0].leave()
			unlock(t, hold)
			if o := result(t, waiters[0].done); o.Err == nil { // it acquired the lock first
				unlock(t, o.Hold)
			}
			unlock(t, acquired(t, waiters[1].done))
		})
		requireNothingFairLeft(t, s)
	}
}

func TestClosingAClientTakesItsWaitersOutOfAFairQueue(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{})
	leaving, staying := c.NewFairLock("job"), newClient(t, s, rlock.Options{}).NewFairLock("job")
	hold := take(t, staying, longLease)
	waiters := waitInTurn(t, s, leaving, leaving, staying, leaving)
	queue := waitForFairQueue(t, s, 4)
	closeClient(t, c)
	for _, i := range []int{0, 1, 3} {
		require.ErrorIs(t, result(t, waiters[i].done).Err, rlock.ErrClosed)
	}
	require.Equal(t, queue[2:3], s.DoStrings(t, "LRANGE", fairQueue, "0", "-1"))
	within(t, sooner, func() {
		unlock(t, hold)
		unlock(t, acquired(t, waiters[2].done))
	})
	requireNothingFairLeft(t, s)
}

func TestForceUnlockOfAFairLockWakesTheHead(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	lock := newClient(t, s, rlock.Options{}).NewFairLock("job")
	hold := take(t, lock, longLease)
	waiters := waitInTurn(t, s, lock, lock)
	within(t, sooner, func() {
		held, err := lock.ForceUnlock(t.Context())
		require.NoError(t, err)
		require.True(t, held)
		next := acquired(t, waiters[0].done)
		require.ErrorIs(t, hold.Err(), rlock.ErrLost)
		require.Empty(t, waiters[1].done)
		unlock(t, next)
		unlock(t, acquired(t, waiters[1].done))
	})
}
