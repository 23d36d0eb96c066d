//go:build redis

package lua_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/lua"
)

// attendSharded is attend on a cluster, with sharded channels.
func attendSharded(tb testing.TB, s *redistest.Server, client string) subscriber {
	tb.Helper()
	return listen(tb, s, "SSUBSCRIBE", lockChannel, present, present+":"+client)
}

// twoNodes starts a cluster. It returns the slot of the lock, its node, and the other node.
func twoNodes(t *testing.T) (cluster *redistest.Cluster, slot int, from, to *redistest.Server) {
	t.Helper()
	cluster = redistest.StartCluster(t, 2)
	slot = cluster.Slot(t, lock)
	from, to = cluster.Owner(t, slot), cluster.Nodes[0]
	if from == to {
		to = cluster.Nodes[1]
	}
	return cluster, slot, from, to
}

func TestLockIsHandedOverThroughShardedChannels(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3)
	c := cluster.Client(t)
	node := cluster.Owner(t, cluster.Slot(t, lock))
	hold(t, node, lock, me, "1", lease)
	register(t, c, plain, older)
	sharded := lua.HandOver{Channels: lua.Sharded, Others: true}

	if !knowsShardedChannels(t, node) { // the lock is granted to nobody and not announced, but free
		out := release(t, c, plain, sharded)
		require.True(t, out.Held)
		require.Equal(t, lua.Nobody, out.To)
		require.Contains(t, out.Refusal, "Unknown Redis command")
		requireFree(t, node, lock)
		return
	}

	// Listeners on channels of the other kind do not hear the message, and do not count.
	subscribe(t, node, "SUBSCRIBE", lockChannel)
	attend(t, node, far)
	require.Equal(t, lua.Released{Held: true}, release(t, c, plain, sharded))
	requireFree(t, node, lock)

	hold(t, node, lock, me, "1", lease)
	sub := attendSharded(t, node, far)
	ticket := register(t, c, plain, older)
	sharded.Streak = lua.Streak{Count: 1, Began: 7}
	require.Equal(t, lua.Released{Held: true, To: lua.Other}, release(t, c, plain, sharded))
	requireSuccessor(t, node, older)
	sub.requireBytes(t,
		array("smessage", present+":"+far, older+" "+decimal(ticket)+" 0 2 7 "+lock))

	node.Do(t, "DEL", lock)
	hold(t, node, lock, me, "1", lease)
	register(t, c, plain, older)
	foreign := subscribe(t, node, "SSUBSCRIBE", lockChannel)
	require.Equal(t, lua.Released{Held: true}, release(t, c, plain, sharded))
	requireFree(t, node, lock)
	foreign.requireBytes(t, array("smessage", lockChannel, "0"))
	sub.requireBytes(t, array("smessage", lockChannel, "0"))
	require.Len(t, registrations(t, node), 1)
}

// While a slot moves, commands with several keys are refused unless one node has them all. Commands
// with the key of the lock alone are executed.
func TestLockOfAMovingSlotIsTakenAndReleasedWithoutRegistrations(t *testing.T) {
	t.Parallel()
	cluster, slot, from, to := twoNodes(t)
	c := cluster.Client(t)
	hold(t, from, lock, me, "1", lease)
	cluster.BeginMove(t, slot, from, to)
	sub := subscribe(t, from, "SUBSCRIBE", lockChannel)

	for range 2 {
		_, _, _, err := plain.Acquire(t.Context(), c, older, waiterLease,
			plain.Registration(older, waiterLease))
		requireError(t, err, lua.ClassTemporary, "TRYAGAIN")
	}
	_, _, holder, err := plain.Acquire(t.Context(), c, older, waiterLease, "")
	require.NoError(t, err)
	require.Equal(t, me, holder.Owner)

	for _, p := range []lua.HandOver{
		toAll, toNext(true), toNext(false), {Withdrawn: plain.Registration(me, waiterLease)},
	} {
		_, err := plain.Release(t.Context(), c, me, 0, p)
		requireError(t, err, lua.ClassTemporary, "TRYAGAIN")
		requireLock(t, from, lock, map[string]string{me: "1"}, lease)
	}
	sub.requireNothing(t)
	require.Equal(t, lua.Released{Held: true}, release(t, c, plain, lua.HandOver{}))
	requireEmpty(t, from)
	sub.requireAnnounced(t)
}

// The key of a released lock is gone, and cannot be written while its slot moves. The lock cannot
// be granted to a waiter, so all of them must hear of the release.
func TestReleaseWhileTheSlotMovesIsAnnounced(t *testing.T) {
	t.Parallel()
	for name, passing := range map[string]lua.HandOver{
		"to another process": {Channels: lua.Sharded, Others: true},
		"to the next one": {Channels: lua.Sharded, Others: true,
			Successor: plain.Registration(next, waiterLease), SuccessorFirst: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster, slot, from, to := twoNodes(t)
			if !knowsShardedChannels(t, from) {
				return // locks of such a cluster are not granted
			}
			c := cluster.Client(t)
			hold(t, from, lock, me, "1", lease)
			register(t, c, plain, older)
			sub := attendSharded(t, from, far)
			cluster.BeginMove(t, slot, from, to)
			require.Equal(t, lua.Released{Held: true}, release(t, c, plain, passing))
			sub.requireBytes(t, array("smessage", lockChannel, "0"))
		})
	}
}

// The waiters of a lock move with it.
func TestRegistrationsMoveWithTheSlot(t *testing.T) {
	t.Parallel()
	cluster, slot, from, to := twoNodes(t)
	c := cluster.Client(t)
	hold(t, from, lock, me, "1", lease)
	ticket := register(t, c, plain, older)
	cluster.MoveSlot(t, slot, from, to)
	sub := attend(t, to, far)
	require.Equal(t, ticket, register(t, c, plain, older))
	require.Equal(t, lua.Other, release(t, c, plain, toAll).To)
	requireSuccessor(t, to, older)
	sub.requireGrant(t, far, older, ticket, 0)
}

func TestKeysAndChannelsOfAHandOverShareTheSlotOfTheLock(t *testing.T) {
	for _, key := range []string{
		waiters, present, lua.AnnouncementChannel(lock), present + ":" + far,
	} {
		require.Equal(t, lua.Slot(lock), lua.Slot(key), key)
	}
	require.Subset(t, lua.Related(lock), []string{waiters, present})
}
