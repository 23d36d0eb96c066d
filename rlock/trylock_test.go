package rlock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

func isNotHeld(err error) bool { return errors.Is(err, rlock.ErrNotHeld) }

func TestTryLockWithoutWaitReturnsAtOnce(t *testing.T) {
	s := redistest.Start(t)
	client := newClient(t, s, rlock.Options{})
	lock := client.NewLock("lock")
	hold := take(t, lock, 30*time.Second)

	start := time.Now()
	_, err := lock.TryLock(t.Context(), rlock.NoWait, rlock.Watchdog)
	took := time.Since(start)
	var held *rlock.HeldError
	require.ErrorAs(t, err, &held)
	require.ErrorIs(t, err, rlock.ErrNotAcquired)
	require.Equal(t, "lock", held.Lock)
	require.Equal(t, hold.Owner(), held.Owner)
	require.InDelta(t, 30*time.Second, held.TTL, float64(2*time.Second))
	require.Less(t, took, time.Second)
	require.Zero(t, subscribers(s, "lock"), "an attempt without wait does not listen")
}

// The best of a few is compared: a busy machine can make one of them late, but nothing may make one of them early.
func TestTryLockWaitIsHonouredWithin20Milliseconds(t *testing.T) {
	s := redistest.Start(t)
	client := newClient(t, s, rlock.Options{})
	lock := client.NewLock("lock")
	hold := take(t, lock, 30*time.Second)
	for _, wait := range []time.Duration{10 * time.Millisecond, 100 * time.Millisecond, 350 * time.Millisecond} {
		best := time.Duration(-1)
		for range 5 {
			start := time.Now()
			_, err := lock.TryLock(t.Context(), wait, rlock.Watchdog)
			took := time.Since(start)
			var held *rlock.HeldError
			require.ErrorAs(t, err, &held)
			require.Equal(t, hold.Owner(), held.Owner)
			require.NotContains(t, err.Error(), "context")
			require.GreaterOrEqual(t, took, wait, "never earlier")
			if best < 0 || took < best {
				best = took
			}
		}
		require.Less(t, best, wait+20*time.Millisecond)
	}
}

func TestTryLockOfAFreeLockDoesNotWait(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	lock := newClient(t, s, rlock.Options{}).NewLock("lock")
	start := time.Now()
	hold, err := lock.TryLock(t.Context(), time.Minute, rlock.Watchdog)
	require.NoError(t, err)
	require.Less(t, time.Since(start), patience)
	unlock(t, hold)
}

// Waiters behind the head have asked nobody, and still know who is in the way from what the head was told.
func TestWaiterBehindAnotherSaysWhoHoldsTheLock(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	client := newClient(t, s, rlock.Options{})
	lock := client.NewLock("lock")
	hold := take(t, lock, 30*time.Second)
	lockInBackground(t.Context(), lock, rlock.Watchdog)
	awaitListeners(t, s, "lock", 1)

	_, err := lock.TryLock(t.Context(), 50*time.Millisecond, rlock.Watchdog)
	var held *rlock.HeldError
	require.ErrorAs(t, err, &held)
	require.Equal(t, hold.Owner(), held.Owner)
	require.InDelta(t, 30*time.Second, held.TTL, float64(2*time.Second))
}

// What a loser hears is about now, not about when it last asked.
func TestHeldErrorSaysHowLongTheLockIsStillHeldWhenTheWaitEnds(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	lock := newClient(t, s, rlock.Options{}).NewLock("lock")
	const lease, wait = 30 * time.Second, 300 * time.Millisecond
	took := time.Now()
	hold := take(t, lock, lease)
	defer unlock(t, hold)
	_, err := lock.TryLock(t.Context(), wait, lease)
	var held *rlock.HeldError
	require.ErrorAs(t, err, &held)
	require.LessOrEqual(t, held.TTL, lease-wait+10*time.Millisecond)
	require.GreaterOrEqual(t, held.TTL, lease-time.Since(took)-10*time.Millisecond)
}
