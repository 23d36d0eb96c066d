package rlock_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// traced returns a client with a tracer.
func traced(t testing.TB, s *redistest.Server, options rlock.Options,
) (*rlock.Client, *locktest.Tracer) {
	t.Helper()
	tr := new(locktest.Tracer)
	options.Tracer = tr
	return newClient(t, s, options), tr
}

// steps returns the types of the events, in their order.
func steps(tr *locktest.Tracer) (types []string) {
	for _, event := range tr.Events() {
		types = append(types, strings.TrimPrefix(fmt.Sprintf("%T", event), "rlock."))
	}
	return types
}

// only returns the only event of a type.
func only[T any](t testing.TB, tr *locktest.Tracer) T {
	t.Helper()
	all := locktest.Heard[T](tr)
	require.Len(t, all, 1)
	return all[0]
}

func TestTracerHearsOfEachStep(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	onEveryKind(t, func(t *testing.T, k kind) {
		c, tr := traced(t, s, rlock.Options{Server: "cache"})
		lock := k.lock(c, k.name)
		before := time.Now()
		hold, err := lock.TryLock(t.Context(), 5*time.Second, 20*time.Second)
		require.NoError(t, err)
		require.Equal(t, []string{"AcquireStart", "HoldStart", "AcquireEnd"}, steps(tr))
		name := rlock.TracedLock{Name: k.name, Kind: k.name, Server: "cache"}

		start := only[rlock.AcquireStart](t, tr)
		require.Equal(t, name, start.Lock)
		require.Equal(t, 5*time.Second, start.Wait)
		require.Equal(t, 20*time.Second, start.Lease)
		require.WithinRange(t, start.Since, before, time.Now())

		begun := only[rlock.HoldStart](t, tr)
		require.Equal(t, rlock.HoldStart{Lock: name, Owner: hold.Owner(), Token: hold.Token(),
			How: rlock.Free, Deadline: hold.Deadline(), Lease: 20 * time.Second}, begun)

		end := only[rlock.AcquireEnd](t, tr)
		require.Positive(t, end.Took)
		end.Took = 0
		require.Equal(t, rlock.AcquireEnd{Lock: name, How: rlock.Free, Requests: 1}, end)

		unlock(t, hold)
		require.ErrorIs(t, hold.Unlock(t.Context()), rlock.ErrNotHeld)
		released := only[rlock.HoldEnd](t, tr)
		require.Positive(t, released.Held)
		require.InDelta(t, 20, released.Margin.Seconds(), 10)
		released.Held, released.Margin = 0, 0
		require.Equal(t, rlock.HoldEnd{Lock: name, Owner: hold.Owner(), Last: true,
			Lease: 20 * time.Second}, released)
	})
}

func TestContextOfAHoldComesFromTheTracer(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, _ := traced(t, s, rlock.Options{})
	hold := take(t, c.NewLock("order"), longLease)
	begun, _ := hold.Context().Value(locktest.TraceKey{}).(rlock.HoldStart)
	require.Equal(t, hold.Owner(), begun.Owner)
	unlock(t, hold)
	require.ErrorIs(t, context.Cause(hold.Context()), rlock.ErrReleased)

	// One that hears of no holds changes no contexts of holds.
	c = newClient(t, s, rlock.Options{Tracer: struct{ rlock.Tracer }{new(locktest.Tracer)}})
	hold = take(t, c.NewLock("order"), longLease)
	require.Nil(t, hold.Context().Value(locktest.TraceKey{}))
	unlock(t, hold)
}

// A waiter behind another of its process becomes the head later.
func TestTracerHearsWhenAWaiterBecomesHead(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, tr := traced(t, s, rlock.Options{})
	lock := c.NewLock("order")
	hold := take(t, lock, longLease)
	ctx, cancel := context.WithCancel(t.Context())
	first := lockInBackground(ctx, lock, longLease)
	locktest.WaitToHear[rlock.WaitStart](t, tr, 1)
	waitForListeners(t, s, "order", 1)
	eventually(t, func() bool { return rlock.Refusals(lock) == 2 }, "the head has not asked again")
	ctx2, cancel2 := context.WithCancel(t.Context())
	second := lockInBackground(ctx2, lock, longLease)
	locktest.WaitToHear[rlock.WaitStart](t, tr, 2)
	eventually(t, func() bool { return rlock.Waiting(lock) == 2 }, "not queued")
	cancel2()
	result(t, second)
	require.True(t, only[rlock.WaitEnd](t, tr).BecameHead.IsZero(), "it never was the head")

	second = lockInBackground(t.Context(), lock, longLease)
	eventually(t, func() bool { return rlock.Waiting(lock) == 2 }, "not queued")
	left := time.Now()
	cancel()
	result(t, first)
	eventually(t, func() bool { return rlock.Refusals(lock) == 3 }, "the new head has not asked")
	unlock(t, hold)
	unlock(t, acquired(t, second))
	waits := locktest.Heard[rlock.WaitEnd](tr)
	require.Len(t, waits, 3)
	require.True(t, waits[2].BecameHead.After(left), "it became head when the first left")
}

func TestTracerHearsHowALockIsHandedOver(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	onEach(t, passing(), func(t *testing.T, k kind) {
		c, tr := traced(t, s, rlock.Options{})
		name := "within:" + k.name
		hold := take(t, k.lock(c, name), longLease)
		lock := k.lock(c, name)
		successor := k.parked(t, s, lock)
		eventually(t, func() bool { return rlock.Refusals(lock) == 2 }, "it has not asked again")
		tr.Forget()
		unlock(t, hold)
		next := acquired(t, successor)
		require.Equal(t, rlock.HandedOver, only[rlock.HoldStart](t, tr).How)
		require.Equal(t, rlock.HandedOver, only[rlock.AcquireEnd](t, tr).How)
		unlock(t, next)
	})
	onEach(t, givenAway(), func(t *testing.T, k kind) {
		c, tr := traced(t, s, rlock.Options{})
		name := "between:" + k.name
		hold := take(t, k.lock(newClient(t, s, rlock.Options{}), name), longLease)
		waiter := registers(t, s, 1, k.lock(c, name), longLease)
		unlock(t, hold)
		next := acquired(t, waiter)
		require.Equal(t, rlock.Granted, only[rlock.HoldStart](t, tr).How)
		require.Equal(t, rlock.Granted, only[rlock.AcquireEnd](t, tr).How)
		unlock(t, next)
	})
}

func TestWaysToAcquireHaveNames(t *testing.T) {
	t.Parallel()
	names := map[rlock.How]string{rlock.NotAcquired: "not acquired", rlock.Free: "free",
		rlock.HandedOver: "handed over", rlock.Granted: "granted", rlock.Reentered: "reentered",
		rlock.Attached: "attached", -1: "unknown", 99: "unknown"}
	for how, name := range names {
		require.Equal(t, name, how.String())
	}
}
