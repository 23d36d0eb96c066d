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
