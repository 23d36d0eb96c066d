package rlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// plainTracer hears of nothing but calls.
type plainTracer struct{ *locktest.Tracer }

func (p plainTracer) HoldStart() {} // hides the method of the tracer, as those below
func (p plainTracer) WaitStart() {}
func (p plainTracer) RenewalEnd() {
}

func TestMultiTracerTellsSeveral(t *testing.T) {
	t.Parallel()
	require.Nil(t, rlock.MultiTracer())
	require.Nil(t, rlock.MultiTracer(nil, nil))
	first, second, plain := new(locktest.Tracer), new(locktest.Tracer), new(locktest.Tracer)
	require.Same(t, first, rlock.MultiTracer(nil, first))

	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{WatchdogLease: 2 * time.Second,
		Tracer: rlock.MultiTracer(first, plainTracer{plain}, nil, second)})
	lock := c.NewLock("order")
	hold := take(t, lock, rlock.Watchdog)
	_, err := lock.TryLock(t.Context(), 300*time.Millisecond, longLease)
	require.ErrorIs(t, err, rlock.ErrNotAcquired)
	for _, tr := range []*locktest.Tracer{first, second} {
		renewed := locktest.WaitToHear[rlock.RenewalEnd](t, tr, 1)[0]
		require.Equal(t, hold.Owner(), renewed.Hold.(locktest.HoldTrace).Owner)
	}
	unlock(t, hold)
	for _, tr := range []*locktest.Tracer{first, second} {
		require.Len(t, locktest.Heard[rlock.AcquireEnd](tr), 2)
		require.Len(t, locktest.Heard[rlock.WaitStart](tr), 1)
		require.Len(t, locktest.Heard[rlock.WaitEnd](tr), 1)
		only[rlock.HoldStart](t, tr)
		only[rlock.HoldEnd](t, tr)
	}
	require.Equal(t, []string{"AcquireStart", "AcquireEnd", "AcquireStart", "AcquireEnd"},
		steps(plain))
	begun, _ := hold.Context().Value(locktest.TraceKey{}).(rlock.HoldStart)
	require.Equal(t, hold.Owner(), begun.Owner)
}
