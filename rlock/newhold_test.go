package rlock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
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

func TestUnlockReleasesAnAcquisitionOnce(t *testing.T) {
	t.Parallel()
	hold, f := newFake(t.Context())
	errs := make(chan error, 10)
	for range cap(errs) {
		go func() { errs <- hold.Unlock(t.Context()) }()
	}
	successes := 0
	for range cap(errs) {
		switch err := receive(t, errs, "Unlock blocks"); err {
		case nil:
			successes++
		default:
			require.ErrorIs(t, err, rlock.ErrNotHeld)
			require.ErrorContains(t, err, `"printer"`)
		}
	}
	require.Equal(t, 1, successes)
	require.Equal(t, []*rlock.Hold{hold}, f.released)
	require.Equal(t, rlock.ErrReleased, hold.Err())
}

// A part of the lock may have to be released still.
func TestUnlockOfAnEndedHoldAsksItsAcquisition(t *testing.T) {
	t.Parallel()
	hold, f := newFake(t.Context())
	lost := &rlock.LostError{Lock: "printer", Reason: watchdog.ErrGone}
	f.failure = lost
	f.end(lost)
	require.Equal(t, lost, hold.Unlock(t.Context()), "the error names the lock already")
	require.Len(t, f.released, 1)
	require.ErrorIs(t, hold.Unlock(t.Context()), rlock.ErrNotHeld)
	require.Len(t, f.released, 1)
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

func TestExtendOfAnAcquisitionIsCalledOnlyWhileItIsHeld(t *testing.T) {
	t.Parallel()
	hold, f := newFake(t.Context())
	require.NoError(t, hold.Extend(t.Context(), time.Minute))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, hold.Extend(ctx, time.Hour), context.Canceled)
	require.Equal(t, []time.Duration{time.Minute, time.Hour}, f.extended)
	f.end(&rlock.LostError{Lock: "printer", Reason: watchdog.ErrGone})
	require.ErrorIs(t, hold.Extend(t.Context(), time.Minute), watchdog.ErrGone)
	require.Len(t, f.extended, 2)

	hold, f = newFake(t.Context())
	unlock(t, hold)
	err := hold.Extend(t.Context(), time.Minute)
	require.ErrorIs(t, err, rlock.ErrNotHeld)
	require.NotErrorIs(t, err, rlock.ErrReleased)
	require.Empty(t, f.extended)
}

func TestContextOfAHoldOfAnotherLockCarriesTheOwner(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{})
	onEveryKind(t, func(t *testing.T, k kind) {
		// The caller's, if there is one, so that its other locks can be re-entered.
		ctx := rlock.WithOwner(t.Context())
		outer := takeWith(ctx, t, k.lock(c, k.name), longLease)
		hold, _ := newFake(ctx)
		inner := takeWith(hold.Context(), t, k.lock(c, k.name), longLease)
		require.Equal(t, outer.Owner(), inner.Owner())
		unlock(t, inner)
		unlock(t, outer)

		// Otherwise a new one, which stays the same.
		hold, _ = newFake(t.Context())
		outer = takeWith(hold.Context(), t, k.lock(c, k.name), longLease)
		inner = takeWith(hold.Context(), t, k.lock(c, k.name), longLease)
		require.Equal(t, outer.Owner(), inner.Owner())
		stranger, _ := newFake(t.Context())
		_, err := k.contender(c, k.name).TryLock(stranger.Context(), rlock.NoWait, longLease)
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
		unlock(t, inner)
		unlock(t, outer)
		requireFree(t, s, k.name)
	})
}
