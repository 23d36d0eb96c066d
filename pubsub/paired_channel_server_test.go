//go:build redis

package pubsub_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/logtest"
	"holdfast/internal/redistest"
	"holdfast/pubsub"
)

// classicOf names the classic channels of every sharded channel.
func classicOf(channel string) []string { return []string{channel, channel + ":mark"} }

// group returns a channel and its paired channels.
func group(channel string) []string { return append([]string{channel}, pair(channel)...) }

// newPaired is newHub with paired channels and more options.
func newPaired(
	t testing.TB, s *redistest.Server, o pubsub.Options, mutators ...func(*rueidis.ClientOption),
) *pubsub.Hub {
	o.Route = toOneNode(s.Client(t, mutators...))
	o.Paired = pair
	if o.Linger == 0 {
		o.Linger = 50 * time.Millisecond
	}
	h := pubsub.New(o)
	t.Cleanup(h.Close)
	return h
}

// listeners returns how many connections listen on each of the channels.
func listeners(t testing.TB, s *redistest.Server, command string, channels ...string) []int64 {
	t.Helper()
	reply := s.Do(t, append([]string{"PUBSUB", command}, channels...)...).([]any)
	var counts []int64
	for i := 1; i < len(reply); i += 2 {
		counts = append(counts, reply[i].(int64))
	}
	return counts
}

// subscriptions returns the monitored commands that subscribe or unsubscribe, without the farewells
// of connections.
func subscriptions(t testing.TB, m *redistest.Monitor) [][]string {
	t.Helper()
	return slices.DeleteFunc(m.Commands(t), func(command []string) bool {
		return !strings.HasSuffix(command[0], "subscribe") || len(command) == 1
	})
}

// lastOf returns the last n commands: those before may have been redirected.
func lastOf(commands [][]string, n int) [][]string { return commands[max(0, len(commands)-n):] }

func TestServerSeesOneCommandForAChannelAndItsPairedChannels(t *testing.T) {
	protocols(t, func(t *testing.T, mutate func(*rueidis.ClientOption)) {
		server := redistest.Start(t)
		h := newPaired(t, server, pubsub.Options{}, mutate)
		monitor := server.Monitor(t)
		subscribe := [][]string{append([]string{"subscribe"}, group("c")...)}

		s := h.Subscribe(pubsub.Topic{Channel: "c"})
		woken(t, s, 5*time.Second)
		require.True(t, s.Paired())
		require.Equal(t, subscribe, subscriptions(t, monitor))
		require.Equal(t, []int64{1, 1, 1}, listeners(t, server, "NUMSUB", group("c")...))

		s.Close()
		deserted(t, server)
		require.Equal(t, [][]string{append([]string{"unsubscribe"}, group("c")...)},
			subscriptions(t, monitor), "after the linger")

		s = h.Subscribe(pubsub.Topic{Channel: "c"})
		woken(t, s, 5*time.Second)
		require.Equal(t, subscribe, subscriptions(t, monitor))
		server.Do(t, "CLIENT", "KILL", "TYPE", "pubsub")
		woken(t, s, 5*time.Second)
		require.True(t, s.Paired())
		require.Equal(t, subscribe, subscriptions(t, monitor), "after the connection was lost")

		h.Close()
		require.Empty(t, channels(t, server))
		require.Empty(t, subscriptions(t, monitor), "the farewell leaves all channels")
	})
}

// churn subscribes to channels and leaves them, loses the connections, and closes the hubs, until
// stop is closed. Messages on the paired channels arrive all the time.
func churn(
	t *testing.T, newHub func() *pubsub.Hub, names []string, interfere func(round int),
	stop <-chan struct{},
) {
	for round := 0; ; round++ {
		h := newHub()
		var waiting sync.WaitGroup
		for _, name := range names {
			waiting.Go(func() {
				for range 5 {
					s := h.Subscribe(pubsub.Topic{Channel: name})
					woken(t, s, 10*time.Second)
					s.Close()
				}
			})
		}
		interfere(round)
		waiting.Wait()
		last := h.Subscribe(pubsub.Topic{Channel: names[0]})
		woken(t, last, 10*time.Second)
		h.Close()
		select {
		case <-stop:
			return
		default:
		}
	}
}

// observe asks again and again which channels have listeners, and requires that a channel and its
// the others of its group always have the same. It returns when it has seen each channel with and
// without listeners.
func observe(t *testing.T, server *redistest.Server, command string, names []string,
	group func(string) []string,
) {
	seen := make(map[string]bool)
	deadline := time.Now().Add(30 * time.Second)
	for rounds := 0; rounds < 500 || len(seen) < 2*len(names); rounds++ {
		require.True(t, time.Now().Before(deadline), "the listeners did not change: %v", seen)
		for _, name := range names {
			counts := listeners(t, server, command, group(name)...)
			require.Equal(t, slices.Repeat(counts[:1], len(counts)), counts, "%s, round %d", name,
				rounds)
			seen[fmt.Sprint(name, counts[0] > 0)] = true
		}
	}
}

// numbered returns n channels.
func numbered(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("channel:{%d}", i)
	}
	return names
}

func TestChannelIsNeverSeenWithoutItsPairedChannels(t *testing.T) {
	protocols(t, func(t *testing.T, mutate func(*rueidis.ClientOption)) {
		server := redistest.Start(t)
		client := server.Client(t, mutate)
		publisher := server.Client(t)
		names := numbered(5)
		stop := make(chan struct{})
		var work sync.WaitGroup
		work.Go(func() {
			churn(t, func() *pubsub.Hub {
				return pubsub.New(pubsub.Options{
					Route: toOneNode(client), Paired: pair, Linger: -1,
					OnDirect: func(string, string) {},
				})
			}, names, func(round int) {
				for _, name := range names {
					for _, channel := range group(name) {
						publish := publisher.B().Publish().Channel(channel).Message("0").Build()
						_ = publisher.Do(context.Background(), publish).Error()
					}
				}
				if round%3 == 0 {
					server.Do(t, "CLIENT", "KILL", "TYPE", "pubsub")
				}
			}, stop)
		})
		defer work.Wait()
		defer close(stop)
		observe(t, server, "NUMSUB", names, group)
	})
}

// The same holds for a classic channel and the one beside it.
func TestShardedChannelIsNeverSeenWithoutItsPairedChannels(t *testing.T) {
	cluster := redistest.StartCluster(t, 3)
	if !knowsSharded(cluster) {
		return
	}
	r := routeOf(t, cluster, numbered(20))
	var names []string // channels of one node
	for _, name := range numbered(20) {
		if cluster.Owner(t, r.slot(name)) == cluster.Nodes[0] {
			names = append(names, name)
		}
	}
	names = names[:3]
	stop := make(chan struct{})
	var work sync.WaitGroup
	work.Go(func() {
		churn(t, func() *pubsub.Hub {
			return pubsub.New(pubsub.Options{Route: r.route, Sharded: true, Paired: pair,
				Classic: classicOf, Linger: -1})
		}, names, func(round int) {
			for _, name := range names {
				cluster.Nodes[0].Do(t, "SPUBLISH", name+":direct", "0")
			}
			if round%3 == 0 {
				cluster.Nodes[0].Do(t, "CLIENT", "KILL", "TYPE", "pubsub")
			}
		}, stop)
	})
	defer work.Wait()
	defer close(stop)
	observe(t, cluster.Nodes[0], "SHARDNUMSUB", names, group)
	observe(t, cluster.Nodes[0], "NUMSUB", names, classicOf)
}

// knowsSharded reports whether the servers have sharded channels, as Redis 7 does.
func knowsSharded(c *redistest.Cluster) bool {
	_, err := c.Nodes[0].Call("PUBSUB", "SHARDNUMSUB")
	return err == nil
}

// routeOf returns a Route that knows the slots of the channels, but not yet their nodes.
func routeOf(t *testing.T, c *redistest.Cluster, names []string) *clusterRoute {
	slots := make(map[string]int)
	for _, name := range names {
		slots[name] = c.Slot(t, name)
	}
	return &clusterRoute{
		client: c.Client(t),
		slot:   func(channel string) int { return slots[channel] },
		owners: []owner{{0, 16383, c.Nodes[0].Addr()}},
	}
}

func TestSlotThatMovesTakesThePairedChannelsAlongOnAServer(t *testing.T) {
	cluster := redistest.StartCluster(t, 3)
	if !knowsSharded(cluster) {
		return
	}
	name := numbered(1)[0]
	r := routeOf(t, cluster, []string{name})
	direct := make(chan string, 10)
	h := pubsub.New(pubsub.Options{
		Route: r.route, Sharded: true, Paired: pair, Classic: classicOf, Linger: 50 * time.Millisecond,
		OnDirect: func(channel, message string) { direct <- channel + " " + message },
	})
	t.Cleanup(h.Close)
	s := h.Subscribe(pubsub.Topic{Channel: name})
	woken(t, s, 10*time.Second)
	require.True(t, s.Paired())

	from := cluster.Owner(t, r.slot(name))
	to := cluster.Nodes[slices.IndexFunc(cluster.Nodes,
		func(node *redistest.Server) bool { return node != from })]
	require.Equal(t, []int64{1, 1, 1}, listeners(t, from, "SHARDNUMSUB", group(name)...))
	monitor := to.Monitor(t)
	cluster.MoveSlot(t, r.slot(name), from, to)
	woken(t, s, 10*time.Second)
	require.True(t, s.Paired())
	require.Equal(t, []int64{1, 1, 1}, listeners(t, to, "SHARDNUMSUB", group(name)...))
	require.Equal(t, []int64{0, 0, 0}, listeners(t, from, "SHARDNUMSUB", group(name)...))
	require.Equal(t, [][]string{append([]string{"subscribe"}, classicOf(name)...),
		append([]string{"ssubscribe"}, group(name)...)}, lastOf(subscriptions(t, monitor), 2))
	require.EqualValues(t, 1, to.DoInt(t, "SPUBLISH", name+":direct", "yours"))
	heard(t, direct, name+":direct yours")

	s.Close()
	require.Eventually(t, func() bool { return len(shardChannels(t, to)) == 0 }, 5*time.Second,
		5*time.Millisecond)
	require.Equal(t, [][]string{append([]string{"unsubscribe"}, classicOf(name)...),
		append([]string{"sunsubscribe"}, group(name)...)}, subscriptions(t, monitor))
}

func TestMessageOnAPairedChannelReachesOnDirect(t *testing.T) {
	protocols(t, func(t *testing.T, mutate func(*rueidis.ClientOption)) {
		server := redistest.Start(t)
		direct := make(chan string, 10)
		h := newPaired(t, server, pubsub.Options{
			OnDirect: func(channel, message string) { direct <- channel + " " + message },
		}, mutate)
		s := h.Subscribe(pubsub.Topic{Channel: "c"})
		woken(t, s, 5*time.Second)
		require.EqualValues(t, 1, server.DoInt(t, "PUBLISH", "c:direct", "0"))
		heard(t, direct, "c:direct 0")
		unwoken(t, s)
		require.EqualValues(t, 1, server.DoInt(t, "PUBLISH", "c", "0"))
		woken(t, s, 5*time.Second)
		require.Empty(t, direct)
	})
}

func TestResumedSubscriberIsWokenByTheNextMessage(t *testing.T) {
	server := redistest.Start(t)
	h := newPaired(t, server, pubsub.Options{Linger: time.Hour})
	require.Nil(t, h.Resume(pubsub.Topic{Channel: "c"}))
	s := h.Subscribe(pubsub.Topic{Channel: "c"})
	woken(t, s, 5*time.Second)
	s.Close()
	monitor := server.Monitor(t)
	s = h.Resume(pubsub.Topic{Channel: "c"})
	require.NotNil(t, s)
	unwoken(t, s)
	server.Do(t, "PUBLISH", "c", "0")
	woken(t, s, 5*time.Second)
	require.Empty(t, subscriptions(t, monitor))
}

func TestPairedChannelsThatAnACLRuleForbidsAreLeftOut(t *testing.T) {
	protocols(t, func(t *testing.T, mutate func(*rueidis.ClientOption)) {
		server := redistest.Start(t)
		server.Do(t, "ACL", "SETUSER", "ann", "on", ">secret", "~*", "+@all", "resetchannels", "&c",
			"&open*")
		lines := new(logtest.Lines)
		options := pubsub.Options{Logger: lines.Logger()}
		h := newPaired(t, server, options, mutate, func(o *rueidis.ClientOption) {
			o.Username, o.Password = "ann", "secret"
		})
		open := h.Subscribe(pubsub.Topic{Channel: "open"})
		s := h.Subscribe(pubsub.Topic{Channel: "c"})
		woken(t, s, 5*time.Second)
		woken(t, open, 5*time.Second)
		require.True(t, open.Paired())
		require.False(t, s.Paired())
		require.Empty(t, lines.With("refuses the channel"))
		require.Equal(t, []int64{1, 0, 0}, listeners(t, server, "NUMSUB", group("c")...))
		server.Do(t, "PUBLISH", "c", "0")
		woken(t, s, 5*time.Second)
		require.Eventually(t, func() bool { return len(lines.With("&c:present &c:direct")) == 1 },
			5*time.Second, time.Millisecond)
		require.Equal(t, 1,
			strings.Count(server.DoString(t, "CLIENT", "LIST", "TYPE", "pubsub"), "\n"))

		// The rules are added, and the next connection finds out.
		server.Do(t, "ACL", "SETUSER", "ann", "&c:*")
		server.Do(t, "CLIENT", "KILL", "TYPE", "pubsub")
		woken(t, s, 5*time.Second)
		require.True(t, s.Paired())
		require.Equal(t, []int64{1, 1, 1}, listeners(t, server, "NUMSUB", group("c")...))
		h.Close()
		require.Len(t, lines.With("refuses"), 1)
	})
}

func TestSubscriberOfSeveralChannelsHearsEachOnAServer(t *testing.T) {
	protocols(t, func(t *testing.T, mutate func(*rueidis.ClientOption)) {
		server := redistest.Start(t)
		h := newHub(t, server, mutate)
		s := h.Subscribe(pubsub.Topic{Channel: "a", Name: "topic", Also: []string{"b"}})
		require.Eventually(t, func() bool { return len(channels(t, server)) == 2 }, 5*time.Second,
			time.Millisecond)
		marker := h.Subscribe(pubsub.Topic{Channel: "marker"})
		woken(t, marker, 5*time.Second) // comes after the confirmations
		woken(t, s, 5*time.Second)
		for _, channel := range []string{"a", "b"} {
			server.Do(t, "PUBLISH", channel, "0")
			woken(t, s, 5*time.Second)
		}
		s.Close()
		marker.Close()
		deserted(t, server)
	})
}
