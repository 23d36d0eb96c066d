//go:build redis

package multilock_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/luashim"
	"holdfast/internal/redistest"
	"holdfast/multilock"
	"holdfast/rlock"
)

// Redis Software and Redis Cloud look like a single node, and reject a script for keys of several
// slots. The parts are then taken and released one by one, without another try.
func TestPlainLocksOnAServerThatIsShardedBehindAProxyAreTakenOneByOne(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.WithScripts(luashim.Sharded))
	c := newClient(t, s, rlock.Options{})
	lock := multilock.New(c.NewLock("c"), c.NewLock("a"), c.NewLock("b"))
	single := c.NewLock("other")
	for range 2 { // the first without wait teaches the client, and loads the scripts
		hold, err := lock.TryLock(t.Context(), rlock.NoWait, longLease)
		require.NoError(t, err)
		require.ElementsMatch(t, []string{"a", "b", "c"}, left(t, s))
		inner, err := lock.TryLock(hold.Context(), longWait, rlock.Watchdog)
		require.NoError(t, err)
		require.NoError(t, hold.Extend(t.Context(), longLease))
		unlock(t, inner)
		unlock(t, hold)
		requireFree(t, s)
	}
	unlock(t, take(t, single, longLease))

	monitor := s.Monitor(t)
	hold, err := lock.TryLock(t.Context(), rlock.NoWait, longLease)
	require.NoError(t, err)
	require.Equal(t, 3, scriptCalls(t, monitor), "a command was sent in vain")
	unlock(t, hold)
	require.Equal(t, 3, scriptCalls(t, monitor), "a command was sent in vain")

	theirs := take(t, newClient(t, s, rlock.Options{}).NewLock("b"), longLease)
	_, err = lock.TryLock(t.Context(), rlock.NoWait, longLease)
	require.ErrorIs(t, err, rlock.ErrNotAcquired)
	require.Equal(t, []string{"b"}, slices.Sorted(slices.Values(left(t, s))))
	unlock(t, theirs)

	// A MultiLock that is made now asks for the parts of a slot together.
	slotted := multilock.New(c.NewLock("{a}1"), c.NewLock("{a}2"), c.NewLock("{b}1"))
	learn(t, slotted)
	monitor.Commands(t)
	hold, err = slotted.TryLock(t.Context(), rlock.NoWait, longLease)
	require.NoError(t, err)
	require.Equal(t, 2, scriptCalls(t, monitor))
	unlock(t, hold)
	requireFree(t, s)
}
