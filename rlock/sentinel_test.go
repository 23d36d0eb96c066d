package rlock_test

import (
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

func TestLocksWorkThroughSentinel(t *testing.T) {
	t.Parallel()
	group := redistest.StartSentinel(t)
	requireAllBasics(t, func() rueidis.Client { return group.Client(t) }, true)
	require.Zero(t, group.Nodes[0].DoInt(t, "DBSIZE"))
}

// failOver kills the master and returns the new one. The replica has all that the master had.
func failOver(t *testing.T, group *redistest.Sentinel) *redistest.Server {
	t.Helper()
	master, replica := group.Nodes[0], group.Nodes[1]
	eventually(t, func() bool {
		theirs, err := master.Call("DBSIZE")
		ours, failed := replica.Call("DBSIZE")
		return err == nil && failed == nil && theirs == ours
	}, "the replica lags")
	master.Kill(t)
	eventually(t, func() bool {
		reply, err := replica.Call("ROLE")
		role, _ := reply.([]any)
		return err == nil && role[0] == "master"
	}, "the Sentinel did not promote the replica")
	return replica
}

func TestLocksSurviveAFailover(t *testing.T) {
	t.Parallel()
	group := redistest.StartSentinel(t)
	holder := newClientOn(t, group.Client(t), rlock.Options{WatchdogLease: 20 * time.Second})
	waiting := newClientOn(t, group.Client(t), rlock.Options{})
	renewed := take(t, holder.NewLock("renewed"), rlock.Watchdog)
	explicit := take(t, holder.NewLock("explicit"), time.Minute)
	waiter := lockInBackground(t.Context(), waiting.NewLock("explicit"), time.Minute)
	awaitListeners(t, group.Nodes[0], "explicit", 1)

	master := failOver(t, group)
	require.True(t, renewed.Valid())
	require.Equal(t, map[string]string{renewed.Owner(): "1"}, master.DoMap(t, "HGETALL", "renewed"))
	_, err := waiting.NewLock("renewed").TryLock(t.Context(), 200*time.Millisecond, time.Minute)
	require.Error(t, err, "taken from its holder")

	// The waiter has moved to the new master, where the release is announced.
	awaitListeners(t, master, "explicit", 1)
	start := time.Now()
	unlock(t, explicit)
	unlock(t, acquired(t, waiter))
	require.Less(t, time.Since(start), 3*time.Second, "not woken")
	unlock(t, renewed)
	require.Zero(t, master.DoInt(t, "DBSIZE"))
}

func TestLockWhoseLeaseEndsDuringAFailoverIsLostAndPassesOn(t *testing.T) {
	t.Parallel()
	const lease = 400 * time.Millisecond // the Sentinel waits 500 ms before it does anything
	group := redistest.StartSentinel(t)
	hold := take(t, newClientOn(t, group.Client(t), rlock.Options{WatchdogLease: lease}).NewLock("job"), rlock.Watchdog)
	c := newClientOn(t, group.Client(t), rlock.Options{})
	waiter := lockInBackground(t.Context(), c.NewLock("job"), time.Minute)
	awaitListeners(t, group.Nodes[0], "job", 1)
	master := failOver(t, group)

	require.ErrorIs(t, hold.Err(), rlock.ErrLost)
	next := acquired(t, waiter)
	require.Equal(t, map[string]string{next.Owner(): "1"}, master.DoMap(t, "HGETALL", "job"))
	unlock(t, next)
	unlock(t, take(t, c.NewLock("another"), time.Second))
}
