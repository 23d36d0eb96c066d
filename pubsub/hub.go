package pubsub

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// DefaultLinger is how long a channel without subscribers stays subscribed
// when [Options] do not say otherwise.
const DefaultLinger = time.Second

// Options say where channels live and how they are subscribed.
type Options struct {
	// Route finds the node of a channel. Required. [SingleRoute] is enough when
	// there is one node.
	Route Route

	// Sharded selects SSUBSCRIBE and SUNSUBSCRIBE instead of SUBSCRIBE and
	// UNSUBSCRIBE. The two kinds of channel do not reach each other. Defaults to
	// false.
	Sharded bool

	// Linger is how long a channel stays subscribed after its last subscriber
	// left, so that one that comes back soon finds it confirmed. A negative value
	// unsubscribes at once. Defaults to [DefaultLinger].
	Linger time.Duration

	// Logger is told about channels that the server refuses and nodes that
	// cannot be reached, once each until it changes. Defaults to
	// [slog.Default].
	Logger *slog.Logger
}

// Hub shares the subscriptions of a process. All methods are safe for
// concurrent use. A Hub that is no longer needed must be closed.
type Hub struct {
	options Options
	logger  *slog.Logger
	dial    dialer

	// running ends with Close; work counts every goroutine that was started.
	running context.Context
	stop    context.CancelFunc
	work    sync.WaitGroup

	// mu guards all that follows and the fields of every channel, link and
	// Subscription. It is never held during I/O nor while calling Route or the
	// logger: the readers of the connections wait for it.
	mu       sync.Mutex
	closed   bool
	channels map[string]*channel
	links    map[string]*link // by node; a link that is ending is not in here
	router   router
	outages  outages
	warned   warnings
}

// New returns a Hub without any connection. It panics when there is no Route,
// because nothing could ever be subscribed.
func New(o Options) *Hub {
	if o.Route == nil {
		panic("pubsub: Options.Route is required")
	}
	o.Linger = cmp.Or(o.Linger, DefaultLinger)
	h := &Hub{
		options:  o,
		logger:   cmp.Or(o.Logger, slog.Default()),
		dial:     dialRedis,
		channels: make(map[string]*channel),
		links:    make(map[string]*link),
		router:   router{wake: make(chan struct{}, 1)},
		outages:  make(outages),
		warned:   make(warnings),
	}
	h.running, h.stop = context.WithCancel(context.Background())
	return h
}

// Subscribe adds a subscriber to the named channel. It never blocks: when the
// channel is not subscribed yet, that happens in the background, for as long as
// it takes, until the last subscriber has left. The confirmation arrives as a
// permit on [Subscription.C].
//
// On a closed Hub the result is a Subscription that never fires.
func (h *Hub) Subscribe(name string) *Subscription {
	return h.SubscribeTopic(name, name)
}

// SubscribeTopic is [Hub.Subscribe] for a channel on which more than one thing is
// announced, without saying which: the message for a single waiter wakes one
// subscriber of each topic. Subscribe takes the name of the channel as topic.
func (h *Hub) SubscribeTopic(name, topic string) *Subscription {
	s := &Subscription{hub: h, name: name, topic: topic, permits: make(chan struct{}, 1)}

	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return s
	}
	c := h.channels[name]
	if c == nil {
		c = &channel{name: name}
		h.channels[name] = c
		h.enqueue(c, time.Time{})
	}
	c.join(s)
	return s
}

// Close unsubscribes everything, closes the connections and waits until every
// goroutine of the Hub has ended. Each connection gets about two seconds for
// that when its server does not answer; one that is just being dialled gets
// the dial time-out of its client. Subscriptions stay usable, but never fire
// again. Close may be called more than once; each call waits.
func (h *Hub) Close() {
	h.mu.Lock()
	h.closed = true
	clear(h.channels)
	h.router.queue = nil
	h.stop()
	h.mu.Unlock()

	h.work.Wait()
}

// deliver hands a message to the subscribers of its channel. It runs on the
// reader of a connection.
//
// It does not ask which connection the message came from or which phase the
// channel is in: a message between the confirmation and our knowing of it, or
// from a connection that is being given up, is worth a look too.
func (h *Hub) deliver(m rueidis.PubSubMessage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.channels[m.Channel]
	switch {
	case c == nil:
	case m.Message == wakeOne:
		c.wakeOneOfEach()
	default:
		c.wakeAll()
	}
}

// wakeOne is the message that concerns a single waiter. Whatever else is
// published wakes everybody: waking too many costs a look, waking too few
// costs a wait.
const wakeOne = "0"

// requeue takes a channel off its link and asks the router to place it again at
// the given time. A channel that nobody wants any more is dropped instead.
// Called with mu held.
func (h *Hub) requeue(c *channel, refresh bool, due time.Time) {
	if c.subscribers.Len() == 0 {
		h.drop(c)
		return
	}
	c.leaveLink()
	c.refresh = c.refresh || refresh
	h.enqueue(c, due)
}

// drop forgets a channel that is subscribed nowhere. Called with mu held.
func (h *Hub) drop(c *channel) {
	c.leaveLink()
	c.phase = dropped
	// After Close the map is empty, and before it the name is c's until here.
	delete(h.channels, c.name)
}
