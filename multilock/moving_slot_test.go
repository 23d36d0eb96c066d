//go:build redis

package multilock_test

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/multilock"
	"holdfast/rlock"
)

// While a slot moves, Redis answers a command about several of its locks with TRYAGAIN unless one
// node has them all. A single lock is found, and must not wait for the slot's move to end.
func TestPlainLocksOfAMovingSlotAreTakenAndReleasedOneByOne(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 2)
	c := newClientOn(t, cluster.Client(t), rlock.Options{})
	lock := multilock.New(c.NewLock("{job}a"), c.NewLock("{job}b"), c.NewLock("{job}c"))
	learn(t, lock, c.NewLock("{job}a"))
	slot := cluster.Slot(t, "{job}")
	from := cluster.Owner(t, slot)
	to := cluster.Nodes[0]
	if from == to {
		to = cluster.Nodes[1]
	}
	hold := take(t, lock, longLease)
	cluster.BeginMove(t, slot, from, to)
	host, port, err := net.SplitHostPort(to.Addr())
	require.NoError(t, err)
	from.Do(t, "MIGRATE", host, port, "", "0", "5000", "KEYS", "{job}b")

	inner := takeWith(hold.Context(), t, lock, longLease)
	require.NoError(t, hold.Extend(t.Context(), longLease))
	within(t, 2*time.Second, func() { unlock(t, inner) })
	require.True(t, hold.Valid())
	require.Equal(t, []string{"1"}, levels(t, from, "{job}a"))
	within(t, 2*time.Second, func() { unlock(t, hold) })
	requireFree(t, from, to)

	// A part that another holds is still in the way, and nothing stays held of the parts before it.
	theirs := take(t, c.NewLock("{job}c"), longLease)
	_, err = lock.TryLock(t.Context(), time.Second, longLease)
	require.ErrorIs(t, err, rlock.ErrNotAcquired)
	unlock(t, theirs)
	for _, wait := range []time.Duration{rlock.NoWait, longWait} {
		hold, err := lock.TryLock(t.Context(), wait, longLease)
		require.NoError(t, err)
		within(t, 2*time.Second, func() { unlock(t, hold) })
	}
	requireFree(t, from, to)
	cluster.FinishMove(t, slot, from, to)
	unlock(t, take(t, lock, longLease))
	requireFree(t, from, to)
}
