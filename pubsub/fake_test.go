package pubsub

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/internal/logtest"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// fakeServer lets a test play the server: every SUBSCRIBE and UNSUBSCRIBE arrives as a request, and
// nothing happens until the test replies to it.
type fakeServer struct {
	requests chan *request
	lines    logtest.Lines // what the hub logs

	mu      sync.Mutex
	down    bool
	dials   int
	refresh []bool // one per call of the Route
	routing error
	node    string
}

type request struct {
	conn     *fakeConnection
	verb     string
	channels []string   // names of the requested channels, without paired ones
	groups   [][]string // one per command
	classic  [][]string // one per command, of those that come first
	reply    chan result
}

type result struct {
	replies []error
	err     error
}

type fakeConnection struct {
	server  *fakeServer
	sharded bool
	hooks   rueidis.PubSubHooks
	ended   chan error
	closed  chan struct{}

	farewell func() // what happens while the connection is closed
}

// newFake returns a hub on a fake server. The hub is closed with the test.
func newFake(t testing.TB, o Options) (*Hub, *fakeServer) {
	f := &fakeServer{requests: make(chan *request)}
	o.Route = f.route
	o.Logger = f.lines.Logger()
	h := New(o)
	h.dial = f.dial
	t.Cleanup(h.Close)
	return h, f
}

// inBubble runs a test in a bubble, with a hub on a fake server.
func inBubble(t *testing.T, o Options, test func(t *testing.T, h *Hub, f *fakeServer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h, f := newFake(t, o)
		test(t, h, f)
	})
}

func (f *fakeServer) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *fakeServer) route(
	_ context.Context, _ string, refresh bool,
) (string, rueidis.Client, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refresh = append(f.refresh, refresh)
	return f.node, nil, f.routing
}

func (f *fakeServer) dial(
	_ context.Context, _ rueidis.Client, sharded bool, hooks rueidis.PubSubHooks,
) (connection, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dials++
	if f.down {
		return nil, errors.New("connection refused")
	}
	return &fakeConnection{
		server:  f,
		sharded: sharded,
		hooks:   hooks,
		ended:   make(chan error, 1),
		closed:  make(chan struct{}),
	}, nil
}

// next returns the next request, which must have that verb, and these groups if there are any.
func (f *fakeServer) next(t testing.TB, verb string, groups ...[]string) *request {
	t.Helper()
	select {
	case r := <-f.requests:
		require.Equal(t, verb, r.verb)
		if groups != nil {
			require.Equal(t, groups, r.groups)
		}
		return r
	case <-time.After(time.Minute): // of the bubble's clock, if there is one
		t.Fatalf("no %s was sent", verb)
		return nil
	}
}

// confirm accepts the next SUBSCRIBE, which gives a subscriber a permit.
func (f *fakeServer) confirm(t testing.TB, s *Subscription) {
	t.Helper()
	f.next(t, "subscribe").accept()
	take(t, s)
}

// accept replies as a server that agrees.
func (r *request) accept() { r.answer("", "") }

// refuse replies to every channel with an error.
func (r *request) refuse(reply string) { r.answer(reply, reply) }

// answer refuses the classic channels that come first, or the others, or neither.
func (r *request) answer(classic, others string) {
	kind := ""
	if r.conn.sharded {
		kind = "s"
	}
	r.reply <- result{replies: append(r.each("", r.classic, classic),
		r.each(kind, r.groups, others)...)}
}

// each confirms each channel, or returns a refusal for each group.
func (r *request) each(kind string, groups [][]string, refusal string) []error {
	if refusal != "" {
		return slices.Repeat([]error{errors.New(refusal)}, len(groups))
	}
	for _, channel := range slices.Concat(groups...) {
		r.conn.hooks.OnSubscription(
			rueidis.PubSubSubscription{Kind: kind + r.verb, Channel: channel})
	}
	return make([]error, len(groups))
}

func (c *fakeConnection) publish(channel, payload string) {
	c.hooks.OnMessage(rueidis.PubSubMessage{Channel: channel, Message: payload})
}

func (c *fakeConnection) breakOff() { c.ended <- errors.New("connection reset by peer") }

func (c *fakeConnection) subscribe(ctx context.Context, classic, groups [][]string,
) ([]error, error) {
	return c.exchange(ctx, "subscribe", classic, groups)
}

func (c *fakeConnection) unsubscribe(ctx context.Context, classic, groups [][]string,
) ([]error, error) {
	return c.exchange(ctx, "unsubscribe", classic, groups)
}

func (c *fakeConnection) exchange(
	ctx context.Context, verb string, classic, groups [][]string,
) ([]error, error) {
	r := &request{conn: c, verb: verb, classic: classic, groups: groups, reply: make(chan result)}
	for _, group := range groups {
		r.channels = append(r.channels, group[0])
	}
	select {
	case c.server.requests <- r:
	case err := <-c.ended:
		return nil, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case a := <-r.reply:
		return a.replies, a.err
	case err := <-c.ended:
		return nil, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *fakeConnection) lost() <-chan error { return c.ended }

func (c *fakeConnection) close() {
	if c.farewell != nil {
		c.farewell()
	}
	close(c.closed)
}

// take consumes a permit, which must be there or come within the given time.
func take(t testing.TB, s *Subscription) {
	t.Helper()
	select {
	case <-s.C():
	case <-time.After(20 * time.Second):
		t.Fatal("no permit came")
	}
}

// has reports whether there is a permit, and takes it.
func has(s *Subscription) bool {
	select {
	case <-s.C():
		return true
	default:
		return false
	}
}
