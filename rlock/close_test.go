package rlock_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/logtest"
	"holdfast/internal/redistest"
	"holdfast/rlock"
)

func TestCloseEndsWaitsWithErrClosed(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	holder, staying := newClient(t, s, rlock.Options{}), newClient(t, s, rlock.Options{})
	client := newClient(t, s, rlock.Options{})
	var here, elsewhere []<-chan outcome
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, k := range contests() {
		take(t, k.contender(holder, k.name), longLease)
		for range 3 { // in a queue, its head and two behind it
			here = append(here, lockInBackground(ctx, k.lock(staying, k.name), rlock.Watchdog))
		}
		elsewhere = append(elsewhere,
			lockInBackground(t.Context(), k.lock(client, k.name), rlock.Watchdog))
		k.waitForWaiters(t, s, k.name, 3, 1)
	}
	closeClient(t, client)
	for _, waiter := range elsewhere {
		require.ErrorIs(t, result(t, waiter).Err, rlock.ErrClosed)
	}
	for _, waiter := range here {
		require.Empty(t, waiter, "the Close of another client does not end them")
	}
	for _, k := range contests() {
		k.waitForWaiters(t, s, k.name, 3)
	}
}

// waitForWaiters waits until that many waiters of each of several clients listen; each waiter for a
// fair lock listens by itself.
func (k kind) waitForWaiters(t *testing.T, s *redistest.Server, name string, ofEach ...int) {
	t.Helper()
	n := len(ofEach)
	if k.lonely {
		n = 0
		for _, waiters := range ofEach {
			n += waiters
		}
	}
	k.waitForListeners(t, s, name, n)
}

func TestCloseEndsTheWholeQueue(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	holder, client := newClient(t, s, rlock.Options{}), newClient(t, s, rlock.Options{})
	var waiters []<-chan outcome
	for _, k := range contests() {
		take(t, k.contender(holder, k.name), rlock.Watchdog)
		lock := k.lock(client, k.name)
		for range 5 {
			waiters = append(waiters, lockInBackground(t.Context(), lock, rlock.Watchdog))
		}
		eventually(t, func() bool { return rlock.Waiting(lock) == 5 }, "all wait")
		k.waitForWaiters(t, s, k.name, 5)
	}
	closeClient(t, client)
	for _, waiter := range waiters {
		err := result(t, waiter).Err
		require.ErrorIs(t, err, rlock.ErrClosed)
		require.NotErrorIs(t, err, rlock.ErrNotAcquired)
	}
	for _, k := range contests() {
		require.Zero(t, k.listeners(s, k.name), "Close waits until nothing is subscribed")
	}
	require.Empty(t, s.DoStrings(t, "KEYS", "redisson_lock_queue:*"),
		"Close waits until nobody is queued")
	require.Empty(t, s.DoStrings(t, "KEYS", "holdfast_rwlock_writer:*"),
		"Close waits until nobody steps back")
	require.Zero(t, rlock.Sessions(client))
}

func TestClosedClientAcquiresNothing(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	client := newClient(t, s, rlock.Options{})
	closeClient(t, client)
	withoutNesting(t, func(t *testing.T, k kind) {
		lock := k.lock(client, k.name)
		_, err := lock.Lock(t.Context(), rlock.Watchdog)
		require.ErrorIs(t, err, rlock.ErrClosed)
		_, err = lock.TryLock(t.Context(), rlock.NoWait, time.Minute)
		require.ErrorIs(t, err, rlock.ErrClosed)
		_, err = lock.Info(t.Context())
		require.ErrorIs(t, err, rlock.ErrClosed)
		_, err = lock.ForceUnlock(t.Context())
		require.ErrorIs(t, err, rlock.ErrClosed)
	})
	require.Empty(t, s.Keys(t))
}

func TestUnlockWorksAfterClose(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	onEveryKind(t, func(t *testing.T, k kind) {
		client := newClient(t, s, rlock.Options{})
		lock := k.lock(client, k.name)
		outer := take(t, lock, rlock.Watchdog)
		inner := takeWith(outer.Context(), t, lock, rlock.Watchdog)
		closeClient(t, client)
		unlock(t, inner)
		require.Equal(t, "1", k.levels(t, s, k.name, outer.Owner()))
		unlock(t, outer)
		requireFree(t, s, k.name)
		require.ErrorIs(t, outer.Unlock(t.Context()), rlock.ErrNotHeld)
		require.Zero(t, rlock.Sessions(client))
	})
}

func TestReleaseOnCloseReleasesEverything(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	client := newClient(t, s, rlock.Options{ReleaseOnClose: true})
	other := newClient(t, s, rlock.Options{})
	var holds []*rlock.Hold
	var waiters []<-chan outcome
	for _, k := range contests() {
		lock := k.contender(client, k.name)
		outer := take(t, lock, rlock.Watchdog)
		takeWith(outer.Context(), t, lock, time.Minute)
		holds = append(holds, outer)
		waiters = append(waiters,
			lockInBackground(t.Context(), k.lock(other, k.name), rlock.Watchdog))
		k.waitForListeners(t, s, k.name, 1)
	}
	for _, k := range kinds {
		take(t, k.lock(client, "other "+k.name), time.Minute)
	}

	closeClient(t, client)
	for i, hold := range holds {
		require.ErrorIs(t, hold.Err(), rlock.ErrReleased)
		require.ErrorIs(t, hold.Unlock(t.Context()), rlock.ErrNotHeld)
		acquired(t, waiters[i])
	}
	for _, k := range kinds {
		requireFree(t, s, "other "+k.name)
	}
	require.Zero(t, rlock.Sessions(client))
}

// A writer that reads has two holds under one name, which may be released in any order.
func TestReleaseOnCloseReleasesTheReadAndTheWriteLock(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for range 10 {
		client := newClient(t, s, rlock.Options{ReleaseOnClose: true})
		pair, owner := client.NewReadWriteLock("lock"), rlock.WithOwner(t.Context())
		writing := takeWith(owner, t, pair.Write(), rlock.Watchdog)
		reading := takeWith(owner, t, pair.Read(), rlock.Watchdog)
		closeClient(t, client)
		require.ErrorIs(t, writing.Err(), rlock.ErrReleased)
		require.ErrorIs(t, reading.Err(), rlock.ErrReleased)
		requireFree(t, s, "lock")
	}
}

func TestReleaseOnCloseLogsWhatItCannotRelease(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	onEveryKind(t, func(t *testing.T, k kind) {
		logged := new(logtest.Lines)
		client := newClient(t, s, rlock.Options{ReleaseOnClose: true, Logger: logged.Logger()})
		hold := take(t, k.lock(client, k.name), rlock.Watchdog)
		s.Do(t, "SET", k.name, "not a lock")
		closeClient(t, client)
		require.Len(t, logged.With("not released on close"), 1)
		require.Contains(t, logged.With("not released on close")[0], hold.Owner())
	})
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
	// On several connections the cleanup may be executed first: rueidis sends nothing on one until
	// it has the reply to a first command there, as to the client's introduction.
	client := newClient(t, s, rlock.Options{}, redistest.OneConnection)
	take(t, client.NewLock("other"), rlock.Watchdog)
	s.Pause(t)
	var waiters []<-chan outcome
	for _, k := range kinds {
		before := rlock.Sessions(client)
		waiters = append(waiters, lockInBackground(rlock.WithOwner(t.Context()),
			k.lock(client, k.name), rlock.Watchdog))
		eventually(t, func() bool { return rlock.Sessions(client) == before+1 },
			"the acquisition is under way")
	}

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	require.ErrorIs(t, client.Close(ctx), context.DeadlineExceeded)
	require.Less(t, time.Since(start), 2*time.Second)
	for _, waiter := range waiters {
		require.ErrorIs(t, result(t, waiter).Err, rlock.ErrClosed,
			"the wait has ended, the command has not")
	}

	s.Resume(t)
	closeClient(t, client)
	for _, k := range kinds {
		requireFree(t, s, k.name) // an acquisition whose caller left is released
	}
}
