package pubsub_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/pubsub"
)

// protocols runs a test over RESP3, and over RESP2, where rueidis does its
// pub/sub on a second connection.
func protocols(t *testing.T, test func(t *testing.T, mutate func(*rueidis.ClientOption))) {
	t.Run("RESP3", func(t *testing.T) { test(t, func(*rueidis.ClientOption) {}) })
	t.Run("RESP2", func(t *testing.T) { test(t, resp2) })
}

func resp2(o *rueidis.ClientOption) {
	o.AlwaysRESP2 = true
	o.DisableCache = true
}

// newHub returns a hub on one server, closed with the test.
func newHub(t testing.TB, s *redistest.Server, mutators ...func(*rueidis.ClientOption)) *pubsub.Hub {
	h := pubsub.New(pubsub.Options{Route: pubsub.SingleRoute(s.Client(t, mutators...)), Linger: 50 * time.Millisecond})
	t.Cleanup(h.Close)
	return h
}

// woken requires a permit within d.
func woken(t testing.TB, s *pubsub.Subscription, d time.Duration) {
	t.Helper()
	select {
	case <-s.C():
	case <-time.After(d):
		require.FailNow(t, "no permit", "within %s; refusal: %v", d, s.Err())
	}
}

// unwoken requires that no permit is there.
func unwoken(t testing.TB, s *pubsub.Subscription) {
	t.Helper()
	select {
	case <-s.C():
		require.FailNow(t, "a permit out of nowhere")
	default:
	}
}

// channels is what the server knows to be subscribed.
func channels(t testing.TB, s *redistest.Server) []string {
	return s.DoStrings(t, "PUBSUB", "CHANNELS")
}

// deserted waits until nothing is subscribed.
func deserted(t testing.TB, s *redistest.Server) {
	t.Helper()
	require.Eventually(t, func() bool { return len(channels(t, s)) == 0 }, 5*time.Second, 5*time.Millisecond)
}

func newHubOf(t testing.TB, client rueidis.Client) *pubsub.Hub {
	h := pubsub.New(pubsub.Options{Route: pubsub.SingleRoute(client)})
	t.Cleanup(h.Close)
	return h
}

// ours is the goroutines started by the package, by the function they run.
func ours() []string {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	var found []string
	for _, stack := range strings.Split(string(stacks), "\n\n") {
		for _, function := range []string{"(*redisConnection).do", "(*link).run", "(*Hub).route"} {
			if strings.Contains(stack, "holdfast/pubsub."+function) {
				found = append(found, function)
				break
			}
		}
	}
	return found
}

// clusterRoute is a small Route for sharded channels. It remembers the owners
// of the slots until it is told to refresh.
type clusterRoute struct {
	client rueidis.Client
	slot   func(channel string) int

	mu        sync.Mutex
	owners    []owner
	refreshes int
}

type owner struct {
	first, last int
	node        string
}

func (r *clusterRoute) route(ctx context.Context, channel string, refresh bool) (string, rueidis.Client, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if refresh {
		r.refreshes++
		owners, err := r.ask(ctx)
		if err != nil {
			return "", nil, err
		}
		r.owners = owners
	}
	slot := r.slot(channel)
	for _, o := range r.owners {
		if o.first <= slot && slot <= o.last {
			return o.node, r.client.Nodes()[o.node], nil
		}
	}
	return "", nil, fmt.Errorf("nobody serves slot %d", slot)
}

func (r *clusterRoute) ask(ctx context.Context) ([]owner, error) {
	ranges, err := r.client.Do(ctx, r.client.B().ClusterSlots().Build()).ToArray()
	if err != nil {
		return nil, err
	}
	var owners []owner
	for _, message := range ranges {
		parts, err := message.ToArray()
		if err != nil {
			return nil, err
		}
		first, _ := parts[0].AsInt64()
		last, _ := parts[1].AsInt64()
		node, err := parts[2].ToArray()
		if err != nil {
			return nil, err
		}
		host, _ := node[0].ToString()
		port, _ := node[1].AsInt64()
		owners = append(owners, owner{int(first), int(last), fmt.Sprintf("%s:%d", host, port)})
	}
	return owners, nil
}

// shardChannels is what a node has subscribed.
func shardChannels(t testing.TB, s *redistest.Server) []string {
	return s.DoStrings(t, "PUBSUB", "SHARDCHANNELS")
}
