package pubsub

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"holdfast/internal/printable"
	"holdfast/internal/wait"
)

// defaultLinger is the default of Options.linger.
const defaultLinger = time.Second

// Options configures a [Hub]. Route is required.
type Options struct {
	// Route returns where a channel is served: the node's key, and the node's client from which a
	// connection can be dedicated. Channels with the same key share one connection. On a cluster
	// with sharded channels the client must be that of the node, as rueidis.Client.Nodes returns it:
	// the client of the whole cluster refuses channels of different slots on one connection.
	//
	// refresh is true when an earlier result proved wrong: the server said MOVED, the slot moved
	// away, or the node could not be dialled. A Route with a cache must then clear all of it: of the
	// channels that need a refresh at the same time, only the first is asked for with refresh.
	//
	// Route is called by one goroutine at a time, may block, and must return when ctx ends: when the
	// Hub is closed, and after five seconds at the latest. After an error it is called again, with
	// growing delays of up to a second.
	Route func(ctx context.Context, channel string, refresh bool) (string, rueidis.Client, error)

	// Sharded selects SSUBSCRIBE instead of SUBSCRIBE. These kinds of channel do not reach each other.
	Sharded bool

	// Classic, unless nil, returns the classic channels to which a connection subscribes beside each
	// sharded channel. The classic channel of the same name is for publishers that use only classic
	// channels, and its messages count as messages of the sharded channel. There may be others. If
	// the server refuses the classic channels, the hub subscribes to the sharded channel alone. If
	// the server refuses to unsubscribe them, the hub subscribes to no more classic channels. Classic
	// is called like Paired.
	Classic func(channel string) []string

	// Paired returns the paired channels of a channel, which are subscribed and unsubscribed
	// together with it. A paired channel belongs to one channel, is not subscribed to by itself,
	// and must be in the slot of its channel if channels are sharded.
	//
	// If the server refuses the command, for instance because no ACL rule matches the paired
	// channels, the channel is asked for again at once without them. It stays without them until
	// its connection is lost or it is unsubscribed.
	//
	// Paired is called by one goroutine at a time, each time before a channel is given to a
	// connection, and must not block. Its result is not modified. Defaults to no paired channels.
	Paired func(channel string) []string

	// OnDirect, unless nil, is called with every message on a paired channel, and with the name of
	// that channel. It runs on the reader of a connection, concurrently with those of others, and
	// must not block. It may use the Hub, except for Close, and Subscriptions. It may take a mutex
	// under which they are used; Hub.Close must not be called with such a mutex held. It is still
	// called while Hub.Close waits, but not after that has returned.
	OnDirect func(channel, message string)

	// OnUnpaired is called, instead of a warning in the log, when a channel is subscribed without
	// its paired channels because the server refuses them. It may be called concurrently, and
	// without a mutex of the Hub.
	OnUnpaired func(channel string, refusal error)

	// OnLost, unless nil, is called when a connection is lost, and must not block. It may be called
	// concurrently, and without a mutex of the Hub.
	OnLost func()

	// Logger is told about channels that the server refuses and nodes that cannot be reached, once
	// each until it changes. Defaults to [slog.Default].
	Logger *slog.Logger

	// linger is how long a channel stays subscribed after its last subscriber left, for one that
	// comes back soon. A negative value unsubscribes at once. Defaults to defaultLinger. Only tests
	// set it.
	linger time.Duration
}

// Hub shares the subscriptions of a process. All methods are safe for concurrent use. A Hub that is
// no longer needed must be closed.
type Hub struct {
	options Options // with defaults
	dial    func(context.Context, rueidis.Client, bool, rueidis.PubSubHooks) (connection, error)

	running context.Context // ends with Close, while mu is held
	stop    context.CancelFunc
	work    sync.WaitGroup // of every goroutine that was started
	calls   sync.WaitGroup // of OnDirect; Add is called only under mu, for a name in paired
	known   atomic.Int64   // the number of channels, to be read without mu

	// mu guards the fields below and those of every channel, link and Subscription. It is never
	// held during I/O nor while calling one of the Options or the logger, because the readers of
	// the connections wait for it.
	mu       sync.Mutex
	channels map[string]*channel
	paired   map[string]struct{} // the paired channels, by which their messages are recognized
	links    map[string]*link    // by node; without links that are ending
	router   router
	outages  map[string]outage // by node: those that failed, until they accept a channel again
	warned   warnings

	classicForbidden bool // the ACL forbids the classic channels, and the hub has logged it
	noClassic        bool // classic channels cannot be unsubscribed: subscribe to no more of them

	reports []func() // for unlock to call, because a log handler or one of the Options may block
}

// New returns a Hub without any connection. It panics if Options.Route is nil.
func New(o Options) *Hub {
	if o.Route == nil {
		panic("pubsub: Options.Route is required")
	}
	o.linger = cmp.Or(o.linger, defaultLinger)
	o.Logger = cmp.Or(o.Logger, slog.Default())
	if o.Paired == nil {
		o.Paired = func(string) []string { return nil }
	}
	if o.Classic == nil {
		o.Classic = func(string) []string { return nil }
	}
	h := &Hub{options: o, dial: dialRedis, channels: make(map[string]*channel),
		paired: make(map[string]struct{}), links: make(map[string]*link),
		router: router{wake: make(chan struct{}, 1)}, outages: make(map[string]outage),
		warned: make(warnings)}
	h.running, h.stop = context.WithCancel(context.Background())
	return h
}

// Topic identifies what a [Subscription] listens to.
type Topic struct {
	Channel string
	// Name tells apart subscribers of one channel that wait for different things. A message does
	// not say what it is about, so one for a single waiter wakes one subscriber of each name.
	Name string
	// Also has further channels. The Subscription gets permits from all: one for the confirmation
	// of each, and those of the messages. They do not add up here either.
	Also []string
}

// Subscribe adds a subscriber. It never blocks: a channel that is not subscribed yet is subscribed
// in the background, which is tried until it succeeds or the last subscriber has left. The
// confirmation arrives as a permit on [Subscription.C]. On a closed Hub, Subscribe returns a
// Subscription that never fires.
func (h *Hub) Subscribe(to Topic) *Subscription {
	s := &Subscription{hub: h, topic: to.Name, permits: make(chan struct{}, 1)}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.running.Err() == nil {
		h.join(s, to.Channel)
		for _, other := range to.Also {
			h.join(s, other)
		}
	}
	return s
}

// join makes a Subscription a subscriber of the named channel. Called with mu held.
func (h *Hub) join(s *Subscription, name string) {
	c := h.channels[name]
	if c == nil {
		c = &channel{name: name}
		h.channels[name] = c
		h.known.Store(int64(len(h.channels)))
		h.enqueue(c, 0)
	}
	c.join(s)
	if c.phase == confirmed {
		s.permit(0) // its last request was before it listened
	}
}

// Resume adds a subscriber that has not asked yet, without Topic.Also, to a channel that is
// confirmed at present with its paired channels, because it has subscribers or lingers. There is no
// permit then: the caller can ask at once, and hears of what happens from now on. For any other
// channel, and on a closed Hub, it returns nil, and starts and allocates nothing. It never blocks.
func (h *Hub) Resume(to Topic) *Subscription {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.channels[to.Channel]
	if c == nil || !c.isPaired() {
		return nil
	}
	s := &Subscription{hub: h, topic: to.Name, permits: make(chan struct{}, 1)}
	c.join(s)
	return s
}

// Listens reports whether there is any channel, with subscribers or lingering. It takes no mutex,
// because every uncontended lock calls it.
func (h *Hub) Listens() bool { return h.known.Load() > 0 }

// Redial replaces every connection by a new connection, perhaps to another server. A subscription
// gets a permit once the new connection has confirmed it. Redial does not block.
func (h *Hub) Redial() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.links {
		l.replaced = true
		wait.Fire(l.wake)
	}
}

// Close unsubscribes everything, closes the connections and waits until every goroutine of the Hub
// has ended. Each connection gets about two seconds for that when its server does not reply.
// Close does not wait for a dial, because rueidis may block the goroutine until its pool has a
// connection. The goroutine then gives that connection back. Subscriptions stay usable, but never
// fire again. Close may be called more than once, and each call waits.
func (h *Hub) Close() {
	h.mu.Lock()
	for _, c := range h.channels {
		c.phase = dropped
	}
	clear(h.channels)
	h.known.Store(0)
	h.stop()
	h.mu.Unlock()

	h.work.Wait()

	h.mu.Lock()
	clear(h.paired)
	h.mu.Unlock()
	h.calls.Wait()
}

// deliver passes a message to the subscribers of its channel, or to OnDirect, on the reader of a
// connection. It ignores which connection that is and which phase the channel is in: a message that
// arrives before we know of the confirmation, or on a connection that is being given up, is a
// reason to ask too.
func (h *Hub) deliver(m rueidis.PubSubMessage) {
	h.mu.Lock()
	direct := false
	if c := h.channels[m.Channel]; c != nil {
		c.hear(m.Message)
	} else if _, paired := h.paired[m.Channel]; paired && h.options.OnDirect != nil {
		direct = true
		h.calls.Add(1)
	}
	h.mu.Unlock()

	if direct {
		defer h.calls.Done()
		h.options.OnDirect(m.Channel, m.Message)
	}
}

// unlock releases mu and then calls the reports.
func (h *Hub) unlock() {
	reports := h.reports
	h.reports = nil
	h.mu.Unlock()
	for _, report := range reports {
		report()
	}
}

// log adds a log message to the reports. Called with mu held, which is released by unlock.
func (h *Hub) log(level slog.Level, message string, args ...any) {
	for i, arg := range args {
		if err, ok := arg.(error); ok { // perhaps the server's, who may say anything
			args[i] = printable.Short(err.Error())
		}
	}
	h.reports = append(h.reports, func() {
		h.options.Logger.Log(context.Background(), level, message, args...)
	})
}
