package rlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

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
