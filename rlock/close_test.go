package rlock_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/logtest"
	"holdfast/internal/redistest"
	"holdfast/rlock"
)

func TestCloseEndsWaitsWithErrClosed(t *testing.T) {
	t.Parallel()
	q := newLine(t, 3) // the head of the line, and two behind it
	client := newClient(t, q.server, rlock.Options{})
	elsewhere := lockInBackground(t.Context(), client.NewLock("lock"), rlock.Watchdog)
	awaitListeners(t, q.server, "lock", 2)
	closeClient(t, client)
	require.ErrorIs(t, result(t, elsewhere).err, rlock.ErrClosed)
	for _, waiter := range q.waiters {
		require.Empty(t, waiter, "another client's Close is not theirs")
	}
	awaitListeners(t, q.server, "lock", 1)
}

func TestCloseEndsTheWholeLine(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	take(t, newClient(t, s, rlock.Options{}).NewLock("lock"), rlock.Watchdog)
	client := newClient(t, s, rlock.Options{})
	lock := client.NewLock("lock")
	var waiters []<-chan outcome
	for range 5 {
		waiters = append(waiters, lockInBackground(t.Context(), lock, rlock.Watchdog))
	}
	eventually(t, func() bool { return rlock.Waiting(lock) == len(waiters) }, "all wait")
	closeClient(t, client)
	for _, waiter := range waiters {
		err := result(t, waiter).err
		require.ErrorIs(t, err, rlock.ErrClosed)
		require.NotErrorIs(t, err, rlock.ErrNotAcquired)
	}
	require.Zero(t, subscribers(s, "lock"), "Close waits until nothing is subscribed")
	require.Zero(t, rlock.Seats(client))
}

func TestClosedClientAcquiresNothing(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	client := newClient(t, s, rlock.Options{})
	lock := client.NewLock("lock")
	closeClient(t, client)
	_, err := lock.Lock(t.Context(), rlock.Watchdog)
	require.ErrorIs(t, err, rlock.ErrClosed)
	_, err = lock.TryLock(t.Context(), rlock.NoWait, time.Minute)
	require.ErrorIs(t, err, rlock.ErrClosed)
	_, err = lock.Info(t.Context())
	require.ErrorIs(t, err, rlock.ErrClosed)
	_, err = lock.ForceUnlock(t.Context())
	require.ErrorIs(t, err, rlock.ErrClosed)
	require.Empty(t, s.DoStrings(t, "KEYS", "*"))
}

func TestCloseEndsHoldsAndLeavesTheLocks(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	client := newClient(t, s, rlock.Options{WatchdogLease: shortLease})
	lock := client.NewLock("lock")
	outer := take(t, lock, rlock.Watchdog)
	inner := takeWith(outer.Context(), t, lock, rlock.Watchdog)
	closeClient(t, client)
	for _, hold := range []*rlock.Hold{outer, inner} {
		require.ErrorIs(t, hold.Err(), rlock.ErrClosed)
		require.ErrorIs(t, context.Cause(hold.Context()), rlock.ErrClosed)
		require.False(t, hold.Valid())
	}
	require.Equal(t, map[string]string{outer.Owner(): "2"}, s.DoMap(t, "HGETALL", "lock"))
	waitUntilFree(t, s, lock) // nobody renews it
}

func TestUnlockWorksAfterClose(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	client := newClient(t, s, rlock.Options{})
	lock := client.NewLock("lock")
	outer := take(t, lock, rlock.Watchdog)
	inner := takeWith(outer.Context(), t, lock, rlock.Watchdog)
	closeClient(t, client)
	unlock(t, inner)
	require.Equal(t, "1", s.DoString(t, "HGET", "lock", outer.Owner()))
	unlock(t, outer)
	require.Zero(t, s.DoInt(t, "EXISTS", "lock"))
	require.ErrorIs(t, outer.Unlock(t.Context()), rlock.ErrNotHeld)
	require.Zero(t, rlock.Seats(client))
}

func TestReleaseOnCloseReleasesEverything(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	client := newClient(t, s, rlock.Options{ReleaseOnClose: true})
	lock := client.NewLock("lock")
	outer := take(t, lock, rlock.Watchdog)
	takeWith(outer.Context(), t, lock, time.Minute)
	take(t, client.NewLock("other"), time.Minute)
	waiter := lockInBackground(t.Context(), newClient(t, s, rlock.Options{}).NewLock("lock"), rlock.Watchdog)
	awaitListeners(t, s, "lock", 1)

	closeClient(t, client)
	require.ErrorIs(t, outer.Err(), rlock.ErrReleased)
	require.ErrorIs(t, outer.Unlock(t.Context()), rlock.ErrNotHeld)
	acquired(t, waiter)
	require.Zero(t, s.DoInt(t, "EXISTS", "other"))
	require.Zero(t, rlock.Seats(client))
}

func TestReleaseOnCloseLogsWhatItCannotRelease(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	logged := new(logtest.Lines)
	client := newClient(t, s, rlock.Options{ReleaseOnClose: true, Logger: logged.Logger()})
	hold := take(t, client.NewLock("lock"), rlock.Watchdog)
	s.Do(t, "DEL", "lock")
	s.Do(t, "SET", "lock", "not a lock")
	closeClient(t, client)
	require.Len(t, logged.With("not released on close"), 1)
	require.Contains(t, logged.With("not released on close")[0], hold.Owner())
}

func TestCloseMayBeCalledManyTimes(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	client := newClient(t, s, rlock.Options{})
	take(t, client.NewLock("lock"), rlock.Watchdog)
	var running sync.WaitGroup
	for range 8 {
		running.Go(func() {
			if err := client.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	closeClient(t, client)
}

func TestCloseIsBoundedByItsContext(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	client := newClient(t, s, rlock.Options{})
	lock := client.NewLock("lock")
	take(t, client.NewLock("other"), rlock.Watchdog)
	s.Pause(t)
	waiter := lockInBackground(t.Context(), lock, rlock.Watchdog)
	eventually(t, func() bool { return rlock.Waiting(lock) == 1 }, "the acquisition is under way")

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	require.ErrorIs(t, client.Close(ctx), context.DeadlineExceeded)
	require.Less(t, time.Since(start), 2*time.Second)
	require.ErrorIs(t, result(t, waiter).err, rlock.ErrClosed, "the wait has ended, the command has not")

	s.Resume(t)
	closeClient(t, client)
	require.Zero(t, s.DoInt(t, "EXISTS", "lock"), "what was acquired on nobody's behalf is released")
}

func TestCloseDoesNotWaitForCallersThatComeBackAgainAndAgain(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	client := newClient(t, s, rlock.Options{})
	stop := make(chan struct{})
	var callers sync.WaitGroup
	defer callers.Wait()
	defer close(stop)
	var held atomic.Int64
	for range 64 {
		callers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if hold, err := client.NewLock("lock").TryLock(t.Context(), time.Second, time.Minute); err == nil {
					held.Add(1)
					_ = hold.Unlock(t.Context())
				}
			}
		})
	}
	eventually(t, func() bool { return held.Load() > 10 }, "the callers are at work")
	closeClient(t, client)
}
