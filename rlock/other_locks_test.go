package rlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/compose"
	"holdfast/internal/redistest"
	"holdfast/rlock"
	"holdfast/watchdog"
)

// What locks of other packages are made of: NewHold, and batches of plain locks.

// fakeAcquisition is an acquisition of a lock that does not exist.
type fakeAcquisition struct {
	deadline time.Time
	failure  error // the error of its methods
}

func (f *fakeAcquisition) Name() string                              { return "printer" }
func (f *fakeAcquisition) Owner() string                             { return "somebody" }
func (f *fakeAcquisition) Token() int64                              { return 17 }
func (f *fakeAcquisition) Deadline() time.Time                       { return f.deadline }
func (f *fakeAcquisition) Extend(context.Context, rlock.Lease) error { return f.failure }
func (f *fakeAcquisition) Release(*rlock.Hold) error                 { return f.failure }

func TestHoldReportsWhatItsAcquisitionReports(t *testing.T) {
	t.Parallel()
	f := &fakeAcquisition{deadline: time.Now().Add(time.Hour), failure: errors.New("paper jam")}
	hold, _ := rlock.NewHold(t.Context(), f)
	require.Equal(t, "printer", hold.Name())
	require.Equal(t, "somebody", hold.Owner())
	require.EqualValues(t, 17, hold.Token())
	require.Equal(t, f.deadline, hold.Deadline())
	require.True(t, hold.Valid())
	f.deadline = time.Now()
	require.False(t, hold.Valid())
	const failed = `holdfast: lock "printer": paper jam`
	require.EqualError(t, hold.Extend(t.Context(), rlock.Lease(time.Second)), failed)
	require.EqualError(t, hold.Unlock(), failed)
}

func TestFirstEndOfAHoldCounts(t *testing.T) {
	t.Parallel()
	lost := &rlock.LostError{Lock: "printer", Reason: watchdog.ErrExpired}
	for _, reason := range []error{rlock.ErrReleased, rlock.ErrClosed, lost} {
		hold, end := rlock.NewHold(t.Context(), &fakeAcquisition{deadline: time.Now().Add(time.Hour)})
		ctx := hold.Context()
		require.NoError(t, ctx.Err())
		end(reason)
		end(rlock.ErrReleased)
		end(errors.New("another reason"))
		receive(t, hold.Done(), "Done is not closed")
		require.Equal(t, reason, hold.Err())
		require.Equal(t, reason, context.Cause(ctx))
		require.Equal(t, reason, context.Cause(hold.Context()))
		require.False(t, hold.Valid())
	}
}

// The mistake: a deferred Unlock comes before the error is looked at.
func TestNilHoldAnswersErrNotHeld(t *testing.T) {
	t.Parallel()
	var hold *rlock.Hold
	err := hold.Unlock()
	require.ErrorIs(t, err, rlock.ErrNotHeld)
	require.ErrorContains(t, err, "the lock was not acquired")
	require.ErrorIs(t, hold.Extend(t.Context(), longLease), rlock.ErrNotHeld)
	require.ErrorIs(t, hold.Err(), rlock.ErrNotHeld)
	require.ErrorIs(t, context.Cause(hold.Context()), rlock.ErrNotHeld)
	require.False(t, hold.Valid())
	require.True(t, hold.Deadline().IsZero())
	require.Empty(t, hold.Name())
	require.Empty(t, hold.Owner())
	require.Zero(t, hold.Token())
	hold.Leave()
	select {
	case <-hold.Done():
	default:
		t.Error("it is not done")
	}
	err = context.Canceled
	hold.UnlockTo(&err)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, rlock.ErrNotHeld)
}

// hook is the hooks of package rlock for package multilock, whose tests cover the rest.
var hook = rlock.Internals(compose.Access{})

// three returns locks that can be acquired as a batch.
func three(c *rlock.Client) []*rlock.Lock {
	return []*rlock.Lock{c.NewLock("a"), c.NewLock("b"), c.NewLock("c")}
}

// takeThree acquires them, for the owner in ctx.
func takeThree(
	ctx context.Context, t *testing.T, c *rlock.Client, lease rlock.Lease,
) []*rlock.Hold {
	t.Helper()
	holds, err := hook.TryBatch(ctx, lease, three(c))
	require.NoError(t, err)
	require.Len(t, holds, 3)
	return holds
}

// The other locks of the attempt are released, and what was held before stays.
func TestPartForceUnlockedBeforeTheReplyFailsTheBatch(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	g := keepReplies(s.Client(t, redistest.OneConnection), loaded(t, s, "batch_acquire.lua"))
	t.Cleanup(g.open)
	c := newClientOn(t, g, rlock.Options{})
	ctx := rlock.WithOwner(t.Context())
	a, b := takeWith(ctx, t, c.NewLock("a"), longLease), takeWith(ctx, t, c.NewLock("b"), longLease)
	attempt := inBackground(func() (*rlock.Hold, error) {
		_, err := hook.TryBatch(ctx, longLease, three(c))
		return nil, err
	})
	receive(t, g.kept, "nothing was asked")
	_, err := c.NewLock("b").ForceUnlock(t.Context())
	require.NoError(t, err)
	g.open()
	o := result(t, attempt)
	require.ErrorIs(t, o.Err, rlock.ErrLost)
	require.ErrorContains(t, o.Err, `lock "b": lost`)
	require.ErrorIs(t, b.Err(), rlock.ErrLost)
	require.True(t, a.Valid())
	waitUntilFree(t, s, "b")
	waitUntilFree(t, s, "c")
	unlock(t, a)
	requireFree(t, s, "a")
}

func TestBatchReleaseHasAnErrorForEach(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{})
	ctx := rlock.WithOwner(t.Context())
	outer := takeThree(ctx, t, c, longLease)
	inner := takeThree(ctx, t, c, longLease)
	unlock(t, inner[0])
	s.Do(t, "DEL", "c") // behind everyone's back
	errs := hook.ReleaseBatch(inner)
	require.ErrorIs(t, errs[0], rlock.ErrNotHeld)
	require.NoError(t, errs[1])
	require.ErrorIs(t, errs[2], rlock.ErrLost)
	require.Equal(t, "1", s.DoString(t, "HGET", "a", outer[0].Owner()))
	require.Equal(t, "1", s.DoString(t, "HGET", "b", outer[1].Owner()))
	require.ErrorIs(t, outer[2].Err(), rlock.ErrLost)
	errs = hook.ReleaseBatch(outer)
	require.NoError(t, errs[0])
	require.NoError(t, errs[1])
	require.ErrorIs(t, errs[2], watchdog.ErrGone)
	require.ErrorContains(t, errs[2], `lock "c": lost`)
	for _, err := range hook.ReleaseBatch(outer) {
		require.ErrorIs(t, err, rlock.ErrNotHeld)
	}
	require.Empty(t, s.Keys(t))
	require.Zero(t, rlock.Sessions(c))
}

func TestBatchReleaseDoesNotWaitForAPartThatAnotherCallUses(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	g := keepReplies(s.Client(t, redistest.OneConnection), loaded(t, s, "renew.lua"))
	c := newClientOn(t, g, rlock.Options{CommandTimeout: 2 * longWait})
	t.Cleanup(g.open)
	holds := takeThree(t.Context(), t, c, longLease)
	extended := make(chan error, 1)
	go func() { extended <- holds[1].Extend(t.Context(), longLease) }()
	receive(t, g.kept, "nothing was asked")
	released := make(chan []error, 1)
	go func() { released <- hook.ReleaseBatch(holds) }()
	waitUntilFree(t, s, "a")
	waitUntilFree(t, s, "c")
	require.Empty(t, released)
	require.NotEmpty(t, s.DoMap(t, "HGETALL", "b"))

	g.open()
	require.NoError(t, receive(t, extended, "Extend hangs"))
	for _, err := range receive(t, released, "the release hangs") {
		require.NoError(t, err)
	}
	require.Empty(t, s.Keys(t))
	require.Zero(t, rlock.Sessions(c))
}
