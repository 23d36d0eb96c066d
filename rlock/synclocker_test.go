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

func TestSyncLockerExcludes(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	client := newClient(t, s, rlock.Options{})
	locker := rlock.AsSyncLocker(t.Context(), client.NewLock("lock"), rlock.Watchdog)
	counter := 0 // the race detector and the sum show whether it is protected
	var running sync.WaitGroup
	for range 8 {
		running.Go(func() {
			for range 10 {
				locker.Lock()
				counter++
				locker.Unlock()
			}
		})
	}
	running.Wait()
	require.Equal(t, 80, counter)
	require.Zero(t, s.DoInt(t, "EXISTS", "lock"))
}

// Even with an owner in the context: a sync.Mutex locked twice blocks as well.
func TestSyncLockerDoesNotReenter(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	lock := newClient(t, s, rlock.Options{}).NewLock("lock")
	locker := rlock.AsSyncLocker(rlock.WithOwner(t.Context()), lock, rlock.Watchdog)
	locker.Lock()
	second := make(chan struct{})
	go func() {
		defer close(second)
		locker.Lock()
	}()
	eventually(t, func() bool { return rlock.Waiting(lock) == 1 }, "the second Lock waits")
	require.Empty(t, second)
	locker.Unlock()
	receive(t, second, "the second Lock was not woken")
	require.EqualValues(t, 1, s.DoInt(t, "EXISTS", "lock"))
	locker.Unlock()
}

func TestSyncLockerPanicsWhenTheLockCannotBeAcquired(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	lock := newClient(t, s, rlock.Options{}).NewLock("lock")
	take(t, lock, rlock.Watchdog)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	require.Panics(t, rlock.AsSyncLocker(ctx, lock, rlock.Watchdog).Lock)
}

func TestSyncLockerPanicsWhenUnlockedTwice(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	locker := rlock.AsSyncLocker(t.Context(), newClient(t, s, rlock.Options{}).NewLock("lock"),
		rlock.Watchdog)
	require.PanicsWithValue(t, "holdfast: Unlock of an unlocked sync.Locker for \"lock\"",
		locker.Unlock)
	locker.Lock()
	require.EqualValues(t, 1, s.DoInt(t, "EXISTS", "lock"))
	locker.Unlock()
	require.Panics(t, locker.Unlock)
}

func TestSyncLockerThatLostItsLockUnlocksQuietly(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	logged := new(logtest.Lines)
	locker := rlock.AsSyncLocker(t.Context(),
		newClient(t, s, rlock.Options{Logger: logged.Logger()}).NewLock("lock"), rlock.Watchdog)
	locker.Lock()
	s.Do(t, "DEL", "lock")
	require.NotPanics(t, locker.Unlock)
	eventually(t, func() bool { return len(logged.With("lost")) == 1 }, "the loss was logged")
}

// Otherwise two would be inside: the lock that was lost is released after the next Lock.
func TestSyncLockerThatLostItsLockKeepsThatOfTheNext(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	lock := newClient(t, s, rlock.Options{}).NewLock("lock")
	locker := rlock.AsSyncLocker(t.Context(), lock, rlock.Watchdog)
	locker.Lock()
	_, err := lock.ForceUnlock(t.Context())
	require.NoError(t, err)
	locker.Lock()
	require.EqualValues(t, 1, s.DoInt(t, "EXISTS", "lock"))
	locker.Unlock() // of the first
	require.EqualValues(t, 1, s.DoInt(t, "EXISTS", "lock"))
	locker.Unlock()
	requireFree(t, s, "lock")
	require.Panics(t, locker.Unlock)
}
