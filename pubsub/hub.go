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
	// Route returns the node of a channel: a key, and the client of the node. Channels with the same
	// key share a connection, and the Hub dedicates that connection from the client. On a cluster with
	// sharded channels, return the client of the node from [rueidis.Client].Nodes, because the client
	// of a cluster rejects channels of different slots on a connection.
	//
	// refresh is true if an earlier result was wrong: the server replied MOVED, the slot moved, or the
	// dial failed. A Route with a cache must then clear its whole cache. If several channels need a
	// refresh at the same time, refresh is true only for the first.
	//
	// The Hub calls Route on one goroutine at a time. Route may block, but must return when ctx ends,
	// which is after five seconds or when the Hub closes. After an error, the Hub calls Route again,
	// with growing delays of up to a second.
	Route func(ctx context.Context, channel string, refresh bool) (string, rueidis.Client, error)

	// Sharded selects sharded channels (SSUBSCRIBE) instead of classic channels (SUBSCRIBE).
	Sharded bool

	// Classic, unless nil, returns classic channels to which the Hub also subscribes, on the
	// connection of the sharded channel. Set Classic only with Sharded. The classic channel with the
	// name of the sharded channel carries messages of publishers without sharded channels, and the
	// Hub treats them as messages of the sharded channel. Other classic channels serve only to be
	// counted with PUBSUB NUMSUB, and the Hub ignores messages there.
	//
	// If the server rejects SUBSCRIBE, the Hub listens only on the sharded channel. If the server
	// rejects UNSUBSCRIBE, the Hub keeps its classic channels, but subscribes to no further classic
	// channels.
	//
	// The Hub calls Classic like Paired.
	Classic func(channel string) []string

	// Paired returns the paired channels of a channel. The package documentation says what they are
	// for. A paired channel belongs to a single channel, and must not be the channel of a [Topic].
	// With Sharded, a paired channel must be in the slot of its channel.
	//
	// If the server rejects the command for a channel and its paired channels, for example because no
	// ACL rule matches the paired channels, the Hub tries the channel at once without them. The
	// channel stays without paired channels until its connection is lost or the Hub unsubscribes.
	//
	// The Hub calls Paired on one goroutine at a time, each time before a connection gets a channel.
	// Paired must not block. The Hub does not modify the result. Defaults to no paired channels.
	Paired func(channel string) []string

	// OnDirect, unless nil, receives every message on a paired channel. The reader of a connection
	// calls OnDirect, at the same time as other readers, so OnDirect must not block. OnDirect may use
	// Subscriptions and the Hub except for Close. OnDirect may take a mutex that also guards the use
	// of the Hub, but never call Close with that mutex. OnDirect may run while Close waits, but not
	// after Close has returned.
	OnDirect func(channel, message string)

	// OnUnpaired, unless nil, is called when the server has rejected the paired channels of a channel
	// but accepted the channel. Without OnUnpaired, the Hub logs a warning. The Hub may call
	// OnUnpaired concurrently, and holds no mutex.
	OnUnpaired func(channel string, refusal error)

	// OnLost, unless nil, is called when a connection is lost, and must not block. The Hub may call
	// OnLost concurrently, and holds no mutex.
	OnLost func()

	// Logger receives rejected channels and unreachable nodes, once each until the state changes.
	// Defaults to [slog.Default].
	Logger *slog.Logger

	// linger is how long a channel stays subscribed after its last subscriber left, in case a
	// subscriber comes back soon. A negative value unsubscribes at once. Defaults to defaultLinger.
	// Only tests set linger.
	linger time.Duration
}

// Hub shares the subscriptions of a process. All methods are safe for concurrent use. Close a Hub
// after its last use.
type Hub struct {
	options Options // with defaults
	dial    func(context.Context, rueidis.Client, bool, rueidis.PubSubHooks) (connection, error)

	running context.Context // ends with Close, while mu is held
	stop    context.CancelFunc
	work    sync.WaitGroup // of all goroutines
	calls   sync.WaitGroup // of OnDirect; Add is called only under mu, for a name in paired
	known   atomic.Int64   // the number of channels, to be read without mu

	// mu guards the fields below and those of every channel, link and Subscription. The hub never
	// holds mu during I/O, or while it calls one of the Options or the logger, because the readers of
	// the connections wait for mu.
	mu       sync.Mutex
	channels map[string]*channel
	paired   map[string]struct{} // the paired channels, by which their messages are recognized
	links    map[string]*link    // by node; without links that are ending
	router   router
	outages  map[string]outage // by node, until a failed node accepts a channel again
	warned   warnings

	classicForbidden bool // the ACL forbids the classic channels, and the hub has logged it
	noClassic        bool // the server rejects UNSUBSCRIBE, so subscribe to no more classic channels

	reports []func() // for unlock to call, because a log handler or one of the Options may block
}

// New returns a Hub without connections. New panics if Options.Route is nil.
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
	// Name says what the waiter waits for. The waiters of a channel can wait for different things, and
	// a message does not say what has changed. So the message "0" wakes one waiter of each Name.
	Name string
	// Also has further channels. The Subscription gets permits from all of them, but never has more
	// than one permit at a time.
	Also []string
}

// Subscribe adds a waiter, and never blocks. If the channel is confirmed already, the Subscription
// starts with a permit. Otherwise the Hub subscribes to the channel in the background, and keeps
// trying until the server confirms the channel or the last waiter leaves. The confirmation then
// arrives as a permit on [Subscription.C]. On a closed Hub, the Subscription never gets a permit.
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

// Resume joins a channel that the Hub already listens on, without the permit that [Hub.Subscribe]
// would give. Use Resume if you will ask right after it anyway. This request sees everything that
// happened before it, and every later message gives a permit. Resume ignores [Topic].Also and never
// blocks.
//
// If the channel is not confirmed together with its paired channels, Resume does nothing and
// returns nil, as on a closed Hub. Then use Subscribe. A channel without paired channels never
// qualifies, because the result of the request may come as a message to this Hub alone, and such a
// message needs a paired channel.
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

// Listens reports whether the Hub has any channel that is not dropped, even if all waiters have
// left. The package documentation says when the Hub drops a channel. Listens takes no mutex,
// because each uncontended lock calls Listens.
func (h *Hub) Listens() bool { return h.known.Load() > 0 }

// Redial replaces every connection, perhaps by a connection to another server. A subscription gets
// a permit once the new connection has confirmed the channel. Redial does not block.
func (h *Hub) Redial() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.links {
		l.replaced = true
		wait.Fire(l.wake)
	}
}

// Close ends all subscriptions, closes the connections, and waits for all goroutines of the Hub. If
// a server does not reply, its connection takes about two seconds. Close does not wait for a dial,
// because rueidis may block the goroutine until its pool has a connection. The goroutine then gives
// that connection back. Subscriptions stay usable but get no more permits. You may call Close
// several times, and each call waits.
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
// connection. The connection and the phase of the channel do not matter. A message is a reason to
// ask even before the hub learns of the confirmation, or on a connection that the hub is giving up.
// deliver reports whether it has called OnDirect.
func (h *Hub) deliver(m rueidis.PubSubMessage) (direct bool) {
	h.mu.Lock()
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
	return direct
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

// log adds a log message to the reports. Called with mu held; unlock logs the message.
func (h *Hub) log(level slog.Level, message string, args ...any) {
	for i, arg := range args {
		if err, ok := arg.(error); ok { // perhaps of the server, which may send any text
			args[i] = printable.Short(err.Error())
		}
	}
	h.reports = append(h.reports, func() {
		h.options.Logger.Log(context.Background(), level, message, args...)
	})
}
