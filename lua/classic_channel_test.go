//go:build redis

package lua_test

import (
	"slices"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/lua"
)

// nodeWithBoth starts a cluster, and returns the node of the lock. It returns nil on a server
// without sharded channels, because there clients use classic channels only.
func nodeWithBoth(t *testing.T) (rueidis.Client, *redistest.Server) {
	t.Helper()
	cluster := redistest.StartCluster(t, 3)
	node := cluster.Owner(t, cluster.Slot(t, lock))
	if !knowsShardedChannels(t, node) {
		return nil, nil
	}
	return cluster.Client(t), node
}

// hearBoth has a client of this library listen on both kinds of channels, and returns its classic
// connection.
func hearBoth(t *testing.T, s *redistest.Server, channel string) (classic, sharded subscriber) {
	t.Helper()
	return listen(t, s, "SUBSCRIBE", lua.ClassicChannels(channel)...),
		listen(t, s, "SSUBSCRIBE", channel)
}

// Redisson before 3.28 may know only classic channels. On a cluster each message there goes to all
// nodes, so it is sent only if such a client listens.
func TestReleaseIsAlsoAnnouncedOnTheClassicChannelIfAnotherClientListensThere(t *testing.T) {
	t.Parallel()
	c, node := nodeWithBoth(t)
	if node == nil {
		return
	}
	both := lua.HandOver{Channels: lua.Both}
	shared := lua.ReadWrite{Lock: lock, Channels: lua.Both}
	fair := lua.Fair{Lock: lock, Channels: lua.Both, Counted: true}
	held := func() { hold(t, node, lock, me, "1", lease) }
	written := func() {
		node.Do(t, "HSET", lock, "mode", "write", lua.WriteField(me), "1")
	}
	for name, test := range map[string]struct {
		take             func()
		release          func() (lua.Released, error)
		channel, message string
		notices          bool // the reply says that another client listened
	}{
		"release": {held, func() (lua.Released, error) {
			return plain.Release(t.Context(), c, me, 0, both)
		}, lockChannel, "0", true},
		"release that may hand over": {held, func() (lua.Released, error) {
			return plain.Release(t.Context(), c, me, 0,
				lua.HandOver{Channels: lua.Both, Others: true})
		}, lockChannel, "0", true},
		"force unlock": {held, func() (lua.Released, error) {
			return plain.ForceUnlock(t.Context(), c, lua.Both)
		}, lockChannel, "0", false},
		"batch": {held, func() (lua.Released, error) {
			parts, err := lua.ReleaseBatch(t.Context(), c, lua.Both,
				[]lua.BatchPart{releaseOf(lock, me, 0)})
			return parts[0].Released, err
		}, lockChannel, "0", false},
		"reader": {func() {
			node.Do(t, "HSET", lock, "mode", "read", me, "1")
			node.Do(t, "SET", holdKey(me, 1), "1", "PX", ms(lease))
		}, func() (lua.Released, error) {
			return shared.ReleaseRead(t.Context(), c, me, 0)
		}, pairChannel, "0", false},
		"writer": {written, func() (lua.Released, error) {
			return shared.ReleaseWrite(t.Context(), c, me, 0, "", 0)
		}, pairChannel, "1", false},
		"force unlock of a writer": {written, func() (lua.Released, error) {
			return shared.ForceUnlock(t.Context(), c, "write")
		}, pairChannel, "1", false},
		"head of a queue": {func() {
			held()
			holder, err := fair.Acquire(t.Context(), c, lua.FairRequest{Owner: other, Count: 1,
				Lease: lease, Waits: true, Window: fairWindow})
			require.NoError(t, err)
			require.Equal(t, me, holder.Owner)
		}, func() (lua.Released, error) {
			return fair.Release(t.Context(), c, 0, me)
		}, fairChannel + other, "0", false},
	} {
		t.Run(name, func(t *testing.T) {
			classic, sharded := hearBoth(t, node, test.channel)
			test.take()
			out, err := test.release()
			require.NoError(t, err)
			require.Equal(t, lua.Released{Held: true}, out)
			sharded.requireBytes(t, array("smessage", test.channel, test.message))
			classic.requireNothing(t)

			node.Do(t, "FLUSHALL")
			redisson := listen(t, node, "SUBSCRIBE", test.channel)
			test.take()
			out, err = test.release()
			require.NoError(t, err)
			require.Equal(t, lua.Released{Held: true, Classic: test.notices}, out)
			sharded.requireBytes(t, array("smessage", test.channel, test.message))
			redisson.requireBytes(t, array("message", test.channel, test.message))
			classic.requireBytes(t, array("message", test.channel, test.message))
			node.Do(t, "FLUSHALL")
			endClassic(t, redisson, node, test.channel)
		})
	}
}

// A client that does not register must hear of the release, whatever channel it listens on.
func TestLockIsNotHandedOverWhileAnotherClientListensOnTheClassicChannel(t *testing.T) {
	t.Parallel()
	c, node := nodeWithBoth(t)
	if node == nil {
		return
	}
	both := lua.HandOver{Channels: lua.Both, Others: true}
	successor := both
	successor.Successor = plain.Registration(me+"0", lease)
	waiter := attendSharded(t, node, far)
	listen(t, node, "SUBSCRIBE", lua.ClassicChannels(lockChannel)...)
	redisson := listen(t, node, "SUBSCRIBE", lockChannel)
	announced := func(h lua.HandOver) {
		require.Equal(t, lua.Released{Held: true, Classic: true}, release(t, c, plain, h))
		requireFree(t, node, lock)
		redisson.requireBytes(t, array("message", lockChannel, "0"))
		waiter.requireBytes(t, array("smessage", lockChannel, "0"))
		hold(t, node, lock, me, "1", lease)
	}
	hold(t, node, lock, me, "1", lease)
	announced(successor)
	ticket := register(t, c, plain, older)
	announced(both)

	endClassic(t, redisson, node, lockChannel)
	require.Equal(t, lua.Released{Held: true, To: lua.Other}, release(t, c, plain, both))
	requireSuccessor(t, node, older)
	waiter.requireBytes(t,
		array("smessage", present+":"+far, older+" "+decimal(ticket)+" 0 1 0 "+lock))
}

// Counting costs the server as much as another command of the script, so it is done once.
func TestReleaseCountsClassicListenersOnce(t *testing.T) {
	t.Parallel()
	c, node := nodeWithBoth(t)
	if node == nil {
		return
	}
	for _, test := range []struct {
		name    string
		prepare func()
	}{
		{"without waiters", func() {}},
		{"whose waiters are dead", func() {
			register(t, c, plain, older)
			register(t, c, plain, me+"0")
		}},
		{"beside Redisson 3.28 or newer", func() { // the last one: it goes on listening
			register(t, c, plain, older)
			listen(t, node, "SSUBSCRIBE", lockChannel)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			node.Do(t, "FLUSHALL")
			hold(t, node, lock, me, "1", lease)
			test.prepare()
			monitor := node.Monitor(t)
			release(t, c, plain, lua.HandOver{Channels: lua.Both, Others: true})
			counted := 0
			for _, command := range monitor.CommandsOfScripts(t) {
				if slices.Contains(command, "NUMSUB") {
					counted++
				}
			}
			require.Equal(t, 1, counted)
		})
	}
}

// Where the server does not count listeners, a client may listen on the classic channel.
func TestReleaseIsAnnouncedOnTheClassicChannelIfListenersCannotBeCounted(t *testing.T) {
	t.Parallel()
	s, c := startAs(t, "-pubsub")
	if !knowsShardedChannels(t, s) {
		return
	}
	for name, h := range map[string]lua.HandOver{
		"release":                    {Channels: lua.Both},
		"release that may hand over": {Channels: lua.Both, Others: true},
	} {
		t.Run(name, func(t *testing.T) {
			redisson := listen(t, s, "SUBSCRIBE", lockChannel)
			hold(t, s, lock, me, "1", lease)
			require.Equal(t, lua.Released{Held: true}, release(t, c, plain, h),
				"nobody was counted, so nobody is reported")
			redisson.requireBytes(t, array("message", lockChannel, "0"))
		})
	}
}

// Waiters listen on the sharded channel, and Redisson ignores the message.
func TestShortLeaseOfASuccessorIsToldOnTheShardedChannel(t *testing.T) {
	t.Parallel()
	c, node := nodeWithBoth(t)
	if node == nil {
		return
	}
	const short = 3 * time.Second
	for name, test := range map[string]struct {
		channel string
		release func() (lua.Released, error)
	}{
		"plain": {lockChannel, func() (lua.Released, error) {
			hold(t, node, lock, me, "1", lease)
			return plain.Release(t.Context(), c, me, 0, lua.HandOver{Channels: lua.Both,
				Successor: plain.Registration(other, short), SuccessorFirst: true})
		}},
		"writer": {pairChannel, func() (lua.Released, error) {
			node.Do(t, "HSET", lock, "mode", "write", lua.WriteField(me), "1")
			shared := lua.ReadWrite{Lock: lock, Channels: lua.Both}
			return shared.ReleaseWrite(t.Context(), c, me, 0, lua.WriteField(other), short)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			classic, sharded := hearBoth(t, node, test.channel)
			out, err := test.release()
			require.NoError(t, err)
			require.Equal(t, lua.Released{Held: true, To: lua.Successor}, out)
			sharded.requireBytes(t, array("smessage", test.channel, ms(short)))
			classic.requireNothing(t)
			node.Do(t, "FLUSHALL")
		})
	}
}
