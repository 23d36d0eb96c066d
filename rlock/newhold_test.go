package rlock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/rlock"
	"holdfast/watchdog"
)

// fakeAcquisition is an acquisition of a lock that does not exist.
type fakeAcquisition struct {
	deadline time.Time
	failure  error // the error of its methods
	end      func(error)

	mu       sync.Mutex
	released []*rlock.Hold   // guarded by mu
	extended []time.Duration // guarded by mu
}

func (f *fakeAcquisition) Name() string        { return "printer" }
func (f *fakeAcquisition) Owner() string       { return "somebody" }
func (f *fakeAcquisition) Token() int64        { return 17 }
func (f *fakeAcquisition) Deadline() time.Time { return f.deadline }

func (f *fakeAcquisition) Extend(ctx context.Context, lease time.Duration) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.extended = append(f.extended, lease)
	return errors.Join(ctx.Err(), f.failure)
}

func (f *fakeAcquisition) Release(h *rlock.Hold) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.released = append(f.released, h)
	f.end(rlock.ErrReleased)
	return f.failure
}

// newFake returns a hold of a lock that does not exist.
func newFake(ctx context.Context) (*rlock.Hold, *fakeAcquisition) {
	f := &fakeAcquisition{deadline: time.Now().Add(time.Hour)}
	var hold *rlock.Hold
	hold, f.end = rlock.NewHold(ctx, f)
	return hold, f
}

func TestHoldReportsWhatItsAcquisitionReports(t *testing.T) {
	t.Parallel()
	hold, f := newFake(t.Context())
	require.Equal(t, "printer", hold.Name())
	require.Equal(t, "somebody", hold.Owner())
	require.EqualValues(t, 17, hold.Token())
	require.Equal(t, f.deadline, hold.Deadline())
	require.True(t, hold.Valid())
	f.deadline = time.Now()
	require.False(t, hold.Valid())
}

func TestErrorsOfAnAcquisitionNameTheLock(t *testing.T) {
	t.Parallel()
	hold, f := newFake(t.Context())
	f.failure = errors.New("paper jam")
	require.EqualError(
		t,
		hold.Extend(t.Context(), time.Second),
		`holdfast: lock "printer": paper jam`,
	)
	require.EqualError(t, hold.Unlock(t.Context()), `holdfast: lock "printer": paper jam`)
}

func TestFirstEndOfAHoldCounts(t *testing.T) {
	t.Parallel()
	lost := &rlock.LostError{Lock: "printer", Reason: watchdog.ErrExpired}
	for _, reason := range []error{rlock.ErrReleased, rlock.ErrClosed, lost} {
		hold, f := newFake(t.Context())
		ctx, done := hold.Context(), hold.Done()
		require.NoError(t, ctx.Err())
		f.end(reason)
		f.end(rlock.ErrReleased)
		f.end(errors.New("another reason"))
		receive(t, done, "Done is not closed")
		require.Equal(t, reason, hold.Err())
		require.Equal(t, reason, context.Cause(ctx))
		require.Equal(t, reason, context.Cause(hold.Context()))
		require.False(t, hold.Valid())
	}
}
