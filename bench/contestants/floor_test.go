package contestants

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/bench/contest"
)

// recorder is a client without a server that records the contexts of its commands.
type recorder struct {
	rueidis.Client
	mu   sync.Mutex
	seen []context.Context
}

// slot0 is the name of a lock in the slot of the commands that the zero Builder builds.
const slot0 = "{06S}"

func (r *recorder) B() rueidis.Builder { return rueidis.Builder{} }

func (r *recorder) Do(ctx context.Context, _ rueidis.Completed) rueidis.RedisResult {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, ctx)
	return rueidis.RedisResult{}
}

func (r *recorder) contexts() []context.Context {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen
}

func TestFloorsSendTheirCommandsWithTheCallersContext(t *testing.T) {
	type verb struct{}
	both := []string{"Lock", "Unlock"}
	for _, floor := range []struct {
		name string
		of   func(rawClient) contest.Client
		sent []string // the methods that send commands
	}{
		{"raw scripts", func(c rawClient) contest.Client { return &c }, both},
		{"local queue", func(c rawClient) contest.Client {
			return &localClient{rawClient: c, mutexes: map[string]*fairMutex{}}
		}, both},
		{"queue in Redis", func(c rawClient) contest.Client {
			return &queueClient{rawClient: c}
		}, both},
		{"message", func(c rawClient) contest.Client {
			return &listener{rawClient: c, locker: func(c *listener, name string) contest.Locker {
				return &messageLocker{client: c, name: name}
			}}
		}, both[1:]},
		{"message and acquire script", func(c rawClient) contest.Client {
			return &listener{rawClient: c, locker: func(c *listener, name string) contest.Locker {
				return &announcedLocker{*c.rawClient.Locker(name).(*rawLocker), c}
			}}
		}, both},
	} {
		t.Run(floor.name, func(t *testing.T) {
			redis := &recorder{}
			l := floor.of(rawClient{redis: redis}).Locker(slot0)
			// The recorder returns no reply, so both fail.
			_ = l.Lock(context.WithValue(t.Context(), verb{}, "Lock"))
			_ = l.Unlock(context.WithValue(t.Context(), verb{}, "Unlock"))
			var sent []string
			for _, ctx := range redis.contexts() {
				name, _ := ctx.Value(verb{}).(string)
				sent = append(sent, name)
			}
			require.Equal(t, floor.sent, sent)
		})
	}
}

func TestParallelQuorumSendsItsCommandsWithTheCallersContext(t *testing.T) {
	redis := &recorder{}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	l := (&quorumClient{nodes: []rueidis.Client{redis, redis, redis}}).Locker(slot0)
	// Nothing is granted, so Lock releases what it may have acquired: each node is sent two
	// scripts.
	require.ErrorIs(t, l.Lock(ctx), contest.ErrGaveUp)
	require.Eventually(t, func() bool { return len(redis.contexts()) == 6 },
		10*time.Second, time.Millisecond)
	for _, seen := range redis.contexts() {
		require.Equal(t, ctx, seen)
	}
}

func TestFloorsThatWaitReturnWhenTheContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	never := make(chan struct{})
	held := &fairMutex{locked: true}
	client := &listener{messages: never}
	for name, l := range map[string]contest.Locker{
		"local queue": &localLocker{mutex: held, granted: never},
		"message":     &messageLocker{client: client, waits: true},
	} {
		require.ErrorIs(t, l.Lock(ctx), context.Canceled, name)
	}
}
