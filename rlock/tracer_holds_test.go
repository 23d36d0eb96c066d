package rlock_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
	"holdfast/rlock"
)

func TestTracerHearsOfNestedHolds(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	onEveryKind(t, func(t *testing.T, k kind) {
		c, tr := traced(t, s, rlock.Options{})
		lock := k.lock(c, k.name)
		outer := take(t, lock, longLease)
		require.False(t, only[rlock.HoldStart](t, tr).Nested)
		tr.Forget()
		inner := takeWith(outer.Context(), t, lock, longLease)
		require.Equal(t, rlock.Reentered, only[rlock.AcquireEnd](t, tr).How)
		require.True(t, only[rlock.HoldStart](t, tr).Nested)

		unlock(t, outer) // first: the lock stays held
		require.False(t, only[rlock.HoldEnd](t, tr).Last)
		tr.Forget()
		require.NoError(t, lock.Unlock(inner.Context()))
		require.True(t, only[rlock.HoldEnd](t, tr).Last)

		tr.Forget()
		unlock(t, take(t, lock, longLease))
		require.False(t, only[rlock.HoldStart](t, tr).Nested, "another acquisition")
	})
}

func TestTracerHearsOfALossThatOnlyTheReleaseFinds(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	onEveryKind(t, func(t *testing.T, k kind) {
		c, tr := traced(t, s, rlock.Options{})
		hold := take(t, k.lock(c, k.name), longLease)
		s.Do(t, "DEL", k.name)
		require.ErrorIs(t, hold.Unlock(t.Context()), rlock.ErrLost)
		end := only[rlock.HoldEnd](t, tr)
		require.ErrorIs(t, end.Err, rlock.ErrGone)
		require.Positive(t, end.Margin)
	})
}

// A lease that is shorter than what is left changes nothing.
func TestTracerHearsOfTheLeaseAfterAnExtension(t *testing.T) {
	t.Parallel()
	c, tr := traced(t, redistest.Start(t), rlock.Options{})
	hold := take(t, c.NewLock("order"), longLease)
	require.NoError(t, hold.Extend(t.Context(), time.Second))
	unlock(t, hold)
	require.Equal(t, longLease, only[rlock.HoldEnd](t, tr).Lease)

	tr.Forget()
	hold = take(t, c.NewLock("order"), time.Minute)
	require.NoError(t, hold.Extend(t.Context(), longLease))
	unlock(t, hold)
	require.Equal(t, longLease, only[rlock.HoldEnd](t, tr).Lease)
}

func TestTracerHearsOfAForcedLoss(t *testing.T) {
	t.Parallel()
	c, tr := traced(t, redistest.Start(t), rlock.Options{})
	lock := c.NewLock("order")
	hold := take(t, lock, longLease)
	_, err := lock.ForceUnlock(t.Context())
	require.NoError(t, err)
	lostTo(t, hold, rlock.ErrForced)
	require.ErrorIs(t, locktest.WaitToHear[rlock.HoldEnd](t, tr, 1)[0].Err, rlock.ErrForced)
}

func TestTracerHearsOfALeaseThatRunsOut(t *testing.T) {
	t.Parallel()
	c, tr := traced(t, redistest.Start(t), rlock.Options{})
	hold := take(t, c.NewLock("order"), time.Second)
	lostTo(t, hold, rlock.ErrExpired)
	end := locktest.WaitToHear[rlock.HoldEnd](t, tr, 1)[0]
	require.ErrorIs(t, end.Err, rlock.ErrExpired)
	require.LessOrEqual(t, end.Margin, time.Duration(0))
	require.Len(t, locktest.Heard[rlock.HoldEnd](tr), 1)
}

func TestTracerHearsOfAReleaseWithoutAReply(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, tr := traced(t, s, rlock.Options{CommandTimeout: 500 * time.Millisecond})
	hold := take(t, c.NewLock("order"), longLease)
	end := befall(t, s, "hangs")
	require.ErrorIs(t, hold.Unlock(t.Context()), rlock.ErrOutcomeUnknown)
	end()
	require.ErrorIs(t, only[rlock.HoldEnd](t, tr).Err, rlock.ErrOutcomeUnknown)
	waitUntilFree(t, s, "order")
}

func TestTracerHearsOfHoldsThatAreLeft(t *testing.T) {
	t.Parallel()
	c, tr := traced(t, redistest.Start(t), rlock.Options{})
	hold := take(t, c.NewLock("order"), longLease)
	text, err := hold.Detach()
	require.NoError(t, err)
	end := only[rlock.HoldEnd](t, tr)
	require.NoError(t, end.Err)
	require.True(t, end.Left)

	tr.Forget()
	hold, err = c.Attach(t.Context(), text, longLease)
	require.NoError(t, err)
	require.Equal(t, rlock.Attached, only[rlock.AcquireEnd](t, tr).How)
	require.Equal(t, hold.Owner(), only[rlock.HoldStart](t, tr).Owner)
	hold.Leave()
	require.True(t, only[rlock.HoldEnd](t, tr).Left)
	require.True(t, only[rlock.HoldEnd](t, tr).Last)

	tr.Forget()
	_, err = c.Attach(t.Context(), text, longLease) // it works once
	require.ErrorIs(t, only[rlock.AcquireEnd](t, tr).Err, rlock.ErrLost)
	require.ErrorIs(t, err, rlock.ErrLost)
}

func TestTracerHearsOfHoldsThatCloseEnds(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for _, releases := range []bool{false, true} {
		c, tr := traced(t, s, rlock.Options{ReleaseOnClose: releases})
		hold := take(t, c.NewLock(fmt.Sprint("order:", releases)), rlock.Watchdog)
		inner := takeWith(hold.Context(), t, c.NewLock(hold.Name()), rlock.Watchdog)
		closeClient(t, c)
		ends := locktest.Heard[rlock.HoldEnd](tr) // all was told before Close returned
		require.Len(t, ends, 2)
		for _, end := range ends {
			require.Equal(t, !releases, errors.Is(end.Err, rlock.ErrClosed))
			require.Equal(t, releases, end.Err == nil)
		}
		require.True(t, ends[1].Last)
		require.Error(t, inner.Err())
	}
}
