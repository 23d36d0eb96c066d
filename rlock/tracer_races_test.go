package rlock_test

import (
	"context"
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// blocksAt returns a tracer that blocks, once, where it hears of an E, and two channels: it has
// blocked when the first is closed, and goes on when the second is.
func blocksAt[E any]() (tr *locktest.Tracer, blocked, goOn chan struct{}) {
	blocked, goOn = make(chan struct{}), make(chan struct{})
	var first atomic.Bool
	return &locktest.Tracer{Block: func(event any) {
		if _, ok := event.(E); ok && first.CompareAndSwap(false, true) {
			close(blocked)
			<-goOn
		}
	}}, blocked, goOn
}

func TestTracerThatBlocksKeepsCloseFromReleasingNothing(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	tr, blocked, goOn := blocksAt[rlock.HoldEnd]()
	c := newClient(t, s, rlock.Options{Tracer: tr, ReleaseOnClose: true})
	take(t, c.NewLock("a"), longLease)
	take(t, c.NewLock("b"), longLease)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, c.Close(ctx), context.Canceled)
	receive(t, blocked, "not told")
	waitUntilFree(t, s, "a")
	waitUntilFree(t, s, "b")
	close(goOn)
	closeClient(t, c)
	require.Len(t, locktest.Heard[rlock.HoldEnd](tr), 2)
}

// A call that is about a lock while the tracer hears of another one.
func TestTracerMayUseOtherLocks(t *testing.T) {
	t.Parallel()
	var other atomic.Pointer[rlock.Lock]
	var errs [2]atomic.Value
	tr := &locktest.Tracer{Block: func(event any) {
		l := other.Load()
		if l == nil {
			return
		}
		lock := reflect.ValueOf(event).FieldByName("Lock").Interface().(rlock.TracedLock)
		if lock.Name == l.Name() {
			return
		}
		hold, err := l.Lock(context.Background(), longLease)
		if err != nil {
			errs[0].Store(err)
			return
		}
		if err := hold.Unlock(context.Background()); err != nil {
			errs[1].Store(err)
		}
	}}
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{Tracer: tr, WatchdogLease: 2 * time.Second})
	other.Store(c.NewLock("other"))
	lock := c.NewLock("order")
	hold := take(t, lock, rlock.Watchdog)
	waiter := lockInBackground(t.Context(), lock, rlock.Watchdog)
	locktest.WaitToHear[rlock.WaitStart](t, tr, 1)
	locktest.WaitToHear[rlock.RenewalEnd](t, tr, 1)
	unlock(t, hold)
	hold = acquired(t, waiter)
	s.Do(t, "DEL", "order")
	lostTo(t, hold, rlock.ErrGone)
	eventually(t, func() bool {
		for _, end := range locktest.Heard[rlock.HoldEnd](tr) {
			if end.Err != nil {
				return true
			}
		}
		return false
	}, "the loss was not told")
	other.Store(nil)
	require.Nil(t, errs[0].Load())
	require.Nil(t, errs[1].Load())
}
