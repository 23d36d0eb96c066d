package integration_test

import (
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/integration"
	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
	"holdfast/internal/wire"
	"holdfast/lua"
)

// A client that listens on a replica, such as a master that was replaced, hears what is published
// on the master, but the master does not count it. It must not hear of a lock that the master then
// grants to another.
func TestWaiterThatListensOnAReplicaIsGrantedNothing(t *testing.T) {
	t.Parallel()
	for _, topology := range []integration.Topology{integration.Replicated, integration.Cluster} {
		t.Run(topology.String(), func(t *testing.T) {
			t.Parallel()
			servers := integration.Start(t, topology)
			redis := servers.Client(t)
			lock := lua.NewExclusive("job", false)
			sharded, channels := topology == integration.Cluster, wire.Classic
			if sharded {
				channels = wire.Both
			}
			heard := listenOn(t, replicaOf(t, servers, "job"), sharded,
				append(wire.PairedChannels(lock.Channel(), "waiter"), lock.Channel())...)
			// Another client listens like a waiter, or no lock would be granted at all.
			listenOn(t, servers.Home(t, "job"), sharded,
				append(wire.PairedChannels(lock.Channel(), "other")[:1], lock.Channel())...)

			_, _, holder, err := lock.Acquire(t.Context(), redis, "holder:1", time.Duration(longLease), "")
			require.NoError(t, err)
			require.Nil(t, holder)
			_, ticket, _, err := lock.Acquire(t.Context(), redis, "waiter:1", time.Duration(longLease),
				lock.Registration("waiter:1", time.Duration(longLease)))
			require.NoError(t, err)
			require.NotZero(t, ticket)
			released, err := lock.Release(t.Context(), redis, "holder:1", 0,
				lua.HandOver{Channels: channels, Others: true})
			require.NoError(t, err)

			require.Equal(t, lua.Nobody, released.To)
			require.Equal(t, wire.Unlocked, locktest.Receive(t, heard, "nothing was announced"))
			state, err := lua.Inspect(t.Context(), redis, "job")
			require.NoError(t, err)
			require.Empty(t, state.Holds)
		})
	}
}

// replicaOf returns a replica of the master that has the keys of a lock.
func replicaOf(t *testing.T, servers *integration.Servers, name string) *redistest.Server {
	t.Helper()
	master := portOf(t, servers.Home(t, name))
	for _, replica := range servers.Replicas(t) {
		if replica.DoStrings(t, "ROLE")[2] == master {
			return replica
		}
	}
	require.FailNow(t, "there is no replica")
	return nil
}

// listenOn subscribes to channels on one server, and returns their messages.
func listenOn(t *testing.T, server *redistest.Server, sharded bool,
	channels ...string) <-chan string {
	t.Helper()
	option := server.ClientOption()
	option.ForceSingleClient = true
	redis, err := rueidis.NewClient(option)
	require.NoError(t, err)
	messages, confirmed, ended := make(chan string, 10), make(chan string, len(channels)),
		make(chan struct{})
	connection, release := redis.Dedicate()
	closed := connection.SetPubSubHooks(rueidis.PubSubHooks{
		OnMessage:      func(m rueidis.PubSubMessage) { messages <- m.Message },
		OnSubscription: func(s rueidis.PubSubSubscription) { confirmed <- s.Channel },
	})
	t.Cleanup(func() {
		release()
		redis.Close()
		<-ended
	})
	go func() {
		defer close(ended)
		for range closed {
		}
	}()
	for _, channel := range channels {
		subscribe := redis.B().Subscribe().Channel(channel).Build()
		if sharded {
			subscribe = redis.B().Ssubscribe().Channel(channel).Build()
		}
		require.NoError(t, connection.Do(t.Context(), subscribe).Error())
		require.Equal(t, channel, locktest.Receive(t, confirmed, "no subscription"))
	}
	return messages
}
