//go:build redis

package rlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
	"holdfast/rlock"
)

func TestTracerHearsOfAWaitThatIsGivenUp(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	onEveryKind(t, func(t *testing.T, k kind) {
		c, tr := traced(t, s, rlock.Options{})
		other := take(t, k.contender(newClient(t, s, rlock.Options{}), k.name), longLease)
		defer unlock(t, other)

		_, err := k.lock(c, k.name).TryLock(t.Context(), rlock.NoWait, longLease)
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
		require.Equal(t, []string{"AcquireStart", "AcquireEnd"}, steps(tr))
		end := only[rlock.AcquireEnd](t, tr)
		require.Equal(t, err, end.Err, "the tracer hears what the caller gets")
		require.Equal(t, rlock.NotAcquired, end.How)

		tr.Forget()
		_, err = k.lock(c, k.name).TryLock(t.Context(), 2*time.Second, longLease)
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
		require.Equal(t, []string{"AcquireStart", "WaitStart", "WaitEnd", "AcquireEnd"}, steps(tr))
		require.False(t, only[rlock.WaitEnd](t, tr).BecameHead.IsZero())
		end = only[rlock.AcquireEnd](t, tr)
		require.Equal(t, only[rlock.WaitEnd](t, tr).Waited, end.Waited)
		require.Positive(t, end.Waited)
		require.Positive(t, end.Requests)

		tr.Forget()
		ctx, cancel := context.WithCancel(t.Context())
		waiter := lockInBackground(ctx, k.lock(c, k.name), longLease)
		locktest.WaitToHear[rlock.WaitStart](t, tr, 1)
		cancel()
		require.ErrorIs(t, result(t, waiter).Err, context.Canceled)
		require.ErrorIs(t, only[rlock.AcquireEnd](t, tr).Err, context.Canceled)
		require.Len(t, locktest.Heard[rlock.WaitEnd](tr), 1)
	})
}

func TestTracerHearsOfAHandOverFromAnotherProcess(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	k := kindNamed("reentrant")
	p := startProcess(t, "given", s.Addr(), k.name, "30s")
	p.Line(t) // it has the lock
	c, tr := traced(t, s, rlock.Options{})
	waiter := registers(t, s, 1, k.lock(c, k.name), longLease)
	p.Tell(t, "release")
	hold := acquired(t, waiter)
	require.Equal(t, rlock.Granted, only[rlock.AcquireEnd](t, tr).How)
	unlock(t, hold)
	p.Wait(t)
}

func TestTracerHearsOfTheShortLeaseOfAHandOver(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	onEach(t, givenAway(), func(t *testing.T, k kind) {
		const short = 5 * time.Second // a tenth of 30 s, but no less than waiters sleep
		c, tr := traced(t, s, rlock.Options{})
		hold := take(t, k.lock(newClient(t, s, rlock.Options{}), k.name), longLease)
		waiter := registers(t, s, 1, k.lock(c, k.name), rlock.Watchdog)
		unlock(t, hold)
		next := acquired(t, waiter)
		require.Equal(t, short, only[rlock.HoldStart](t, tr).Lease)

		renewed := locktest.WaitToHear[rlock.RenewalEnd](t, tr, 1)[0]
		require.NoError(t, renewed.Err)
		require.Equal(t, short, renewed.Lease)
		require.Less(t, renewed.Margin, short)
		tr.Forget()
		unlock(t, next)
		end := only[rlock.HoldEnd](t, tr)
		require.Equal(t, 30*time.Second, end.Lease)
	})
}
