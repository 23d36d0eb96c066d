package rlock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/logtest"
	"holdfast/internal/redistest"
	"holdfast/multilock"
	"holdfast/rlock"
	"holdfast/rlocktest"
)

// See internal/suite/atleast.go for what all kinds of locks promise.

func TestAtLeastSaysWhatItCannotKeep(t *testing.T) {
	t.Parallel()
	c := newClient(t, redistest.Start(t), rlock.Options{})
	lock := c.NewLock("nightly")
	for _, of := range []struct {
		lock rlock.Locker
		d    time.Duration
		says string
	}{
		{c.NewReadWriteLock("nightly").Read(), time.Second, "cannot keep a read lock"},
		{multilock.New(lock), time.Second, "cannot keep a *multilock.Lock"},
		{lock, rlock.Forever, "more than 100 years"},
		{c.NewLock(""), time.Second, "the name is empty"},
	} {
		kept := rlock.AtLeast(of.lock, of.d)
		require.Equal(t, of.lock.Name(), kept.Name())
		_, err := kept.TryLock(t.Context(), rlock.NoWait, rlock.Watchdog)
		require.ErrorIs(t, err, rlock.ErrInvalid)
		require.ErrorContains(t, err, `holdfast: lock "`+of.lock.Name()+`": invalid argument: `)
		require.ErrorContains(t, err, of.says)
		_, err = kept.Lock(t.Context(), rlock.Watchdog)
		require.ErrorIs(t, err, rlock.ErrInvalid)
		require.ErrorIs(t, kept.Unlock(t.Context()), rlock.ErrNotHeld)
	}
	require.Same(t, lock, rlock.AtLeast(lock, 0))
	require.Same(t, lock, rlock.AtLeast(lock, -1))
}

// The renewals of the read lock would renew the kept write lock, because both are one key.
func TestOwnerDoesNotReadBesideAWriteLockOfAtLeast(t *testing.T) {
	t.Parallel()
	pages := newClient(t, redistest.Start(t), rlock.Options{}).NewReadWriteLock("pages")
	kept := rlock.AtLeast(pages.Write(), time.Hour)
	ctx := rlock.WithOwner(t.Context())
	outer := takeWith(ctx, t, pages.Write(), rlock.Watchdog)
	reading := takeWith(ctx, t, pages.Read(), rlock.Watchdog)
	_, err := kept.TryLock(ctx, rlock.NoWait, rlock.Watchdog)
	require.ErrorIs(t, err, rlock.ErrInvalid)
	unlock(t, reading)
	inner := takeWith(ctx, t, kept, rlock.Watchdog)
	_, err = pages.Read().TryLock(ctx, rlock.NoWait, rlock.Watchdog)
	require.ErrorIs(t, err, rlock.ErrInvalid)
	unlock(t, inner)
	unlock(t, outer)
}

func TestLeftAndDetachedHoldsOfAtLeastEndWithTheirLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := rlocktest.New(t).Client()
		lock := rlock.AtLeast(c.NewLock("nightly"), time.Hour)
		for _, end := range []func(*rlock.Hold){(*rlock.Hold).Leave, func(h *rlock.Hold) {
			text, err := h.Detach()
			require.NoError(t, err)
			attached, err := c.Attach(t.Context(), text, rlock.Lease(time.Minute))
			require.NoError(t, err)
			unlock(t, attached)
		}} {
			end(take(t, lock, rlock.Lease(time.Minute)))
			time.Sleep(time.Minute)
			unlock(t, take(t, c.NewLock("nightly"), rlock.Watchdog))
		}
	})
}

// A MultiLock releases its plain locks with one command, which cannot keep any.
func TestMultiLockKeepsALockThatItsOwnerAlsoAcquiredWithAtLeast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := rlocktest.New(t).Client()
		hold := take(t, multilock.NewOn(c, "a", "b"), rlock.Watchdog)
		unlock(t, takeWith(hold.Context(), t, rlock.AtLeast(c.NewLock("a"), time.Minute),
			rlock.Watchdog))
		unlock(t, hold)
		unlock(t, take(t, c.NewLock("b"), rlock.Watchdog))
		_, err := c.NewLock("a").TryLock(t.Context(), time.Minute-time.Second, rlock.Watchdog)
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
		time.Sleep(time.Second)
		unlock(t, take(t, c.NewLock("a"), rlock.Watchdog))
	})
}

// No caller of this process holds the lock, so no caller has to be found.
func TestWaitForALockThatThisProcessKeepsIsNotLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logtest.Lines
		c := rlocktest.New(t).NewClient(rlock.Options{Logger: log.Logger()})
		for _, lock := range []rlock.Locker{c.NewLock("plain"), c.NewFairLock("fair")} {
			kept := rlock.AtLeast(lock, 10*time.Minute)
			unlock(t, take(t, kept, rlock.Watchdog))
			hold, err := kept.Lock(t.Context(), rlock.Watchdog)
			require.NoError(t, err)
			unlock(t, hold)
		}
		require.NoError(t, c.Close(context.Background()))
		require.Empty(t, log.With(""))
	})
}

func TestForceUnlockFreesAKeptLock(t *testing.T) {
	t.Parallel()
	lock := newClient(t, redistest.Start(t), rlock.Options{}).NewLock("nightly")
	unlock(t, take(t, rlock.AtLeast(lock, time.Hour), rlock.Watchdog))
	held, err := lock.ForceUnlock(t.Context())
	require.NoError(t, err)
	require.True(t, held)
	unlock(t, take(t, lock, rlock.Watchdog))
}

// A successor in this process gets the lock neither in a local turn nor by the command.
func TestKeptLockIsNotHandedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := rlocktest.New(t).Client()
		lock, start := rlock.AtLeast(c.NewLock("nightly"), time.Minute), time.Now()
		hold := take(t, lock, rlock.Watchdog)
		for n := range 3 {
			waiter := lockInBackground(t.Context(), lock, rlock.Watchdog)
			synctest.Wait()
			unlock(t, hold)
			time.Sleep(time.Minute - time.Millisecond)
			synctest.Wait()
			require.Empty(t, waiter)
			hold = acquired(t, waiter)
			require.Equal(t, time.Duration(n+1)*time.Minute, time.Since(start))
		}
		unlock(t, hold)
	})
}
