package rlock_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/rlock"
)

// The mistake: a deferred Unlock comes before the error is looked at.
func TestNilHoldAnswersErrNotHeld(t *testing.T) {
	t.Parallel()
	var hold *rlock.Hold
	err := hold.Unlock(t.Context())
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
	hold.UnlockTo(t.Context(), &err)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, rlock.ErrNotHeld)
}
