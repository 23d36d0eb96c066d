//go:build redis

package lua_test

import (
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/internal/wire"
	"holdfast/lua"
)

// knowsShardedChannels reports whether the server does, as Redis 7 and Valkey do.
func knowsShardedChannels(tb testing.TB, s *redistest.Server) bool {
	tb.Helper()
	_, err := s.Call("PUBSUB", "SHARDNUMSUB")
	if err == nil {
		return true
	}
	require.ErrorContains(tb, err, "Unknown subcommand")
	require.Contains(tb, s.DoString(tb, "INFO", "server"), "redis_version:6.")
	return false
}

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
	return listen(t, s, "SUBSCRIBE", wire.ClassicChannels(channel)...),
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
	both := lua.HandOver{Channels: wire.Both}
	shared := lua.ReadWrite{Lock: lock, Channels: wire.Both}
	fair := lua.Fair{Lock: lock, Channels: wire.Both, Counted: true}
	held := func() { hold(t, node, lock, me, "1", lease) }
	written := func() {
		node.Do(t, "HSET", lock, "mode", "write", wire.WriteField(me), "1")
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
				lua.HandOver{Channels: wire.Both, Others: true})
		}, lockChannel, "0", true},
		"force unlock": {held, func() (lua.Released, error) {
			return plain.ForceUnlock(t.Context(), c, wire.Both)
		}, lockChannel, "0", false},
		"batch": {held, func() (lua.Released, error) {
			parts, err := lua.ReleaseBatch(t.Context(), c, wire.Both,
				[]lua.BatchPart{releaseOf(lock, 0)})
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
			require.NoError(t, redisson.Close())
			require.Eventually(t, func() bool { // the server notices
				channels := append([]string{"PUBSUB", "NUMSUB"}, wire.ClassicChannels(test.channel)...)
				heard := node.DoStrings(t, channels...)
				return heard[1] == heard[3]
			}, eventually, poll)
		})
	}
}
