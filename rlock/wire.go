package rlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/redis/rueidis"

	"holdfast/internal/topology"
	"holdfast/lua"
	"holdfast/pubsub"
)

// wire is what depends on the kind of server: how messages travel, and which node serves what.
type wire struct {
	redis   rueidis.Client
	options Options
	cluster *topology.Cluster // nil if it is none
	client  string            // the id of the client
	gift    func(channel, message string)
	warn    func(message string, details ...any)

	fairNames namesakes
	forbidden atomic.Bool // the ACL, or the server, forbids what a hand-over needs
	server    string      // what to call the one node there is, if it is none
	name      string      // what the whole of it is called in all processes; "" if nobody said

	asking sync.Mutex  // held while the cluster is asked
	asked  atomic.Bool // the cluster has answered

	sharded atomic.Bool // written while mu is held
	opened  atomic.Pointer[pubsub.Hub]

	clocks sync.Map // of *serverClock, by node

	mu     sync.RWMutex
	hub    *pubsub.Hub // guarded by mu; nil until it is known whether channels are sharded, and when closed
	closed bool        // guarded by mu
}

func newWire(client string, redis rueidis.Client, options Options, given func(channel, message string)) *wire {
	w := &wire{client: client, redis: redis, options: options, gift: given, server: "the master", name: options.Server}
	switch redis.Mode() {
	case rueidis.ClientModeCluster:
		w.cluster = topology.New(redis)
	case rueidis.ClientModeStandalone:
		// With replicas besides, nobody tells which of the addresses is the master's.
		if nodes := redis.Nodes(); len(nodes) == 1 {
			for address := range nodes {
				w.server = address
			}
			w.name = cmp.Or(w.name, w.server)
		}
	}
	if w.cluster == nil || options.PubSub != PubSubAuto {
		w.open(w.cluster != nil && options.PubSub == PubSubSharded)
	}
	return w
}

func (w *wire) open(sharded bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	w.sharded.Store(sharded)
	options := pubsub.Options{Route: w.route, Sharded: sharded, Logger: w.options.Logger}
	if w.givesAway() {
		options.Companions = w.companions
		options.OnDirect = w.gift
		options.OnUnaccompanied = func(_ string, refusal error) { w.forbid(lua.Classify(refusal), nil) }
	}
	w.hub = pubsub.New(options)
	w.opened.Store(w.hub)
}

// ready makes sure that it is known how messages travel and which node serves what. On a cluster the first call asks it;
// everywhere else there is nothing to ask.
func (w *wire) ready(ctx context.Context) error {
	if w.cluster == nil || w.asked.Load() {
		return nil
	}
	w.asking.Lock()
	defer w.asking.Unlock()
	if w.asked.Load() {
		return nil
	}
	if _, err := w.cluster.Master(ctx, 0, false); err != nil && !errors.Is(err, topology.ErrUnassigned) {
		return lua.Classify(err)
	}
	if w.options.PubSub == PubSubAuto {
		sharded, err := w.knowsSharded(ctx)
		if err != nil {
			return err
		}
		w.open(sharded)
	}
	w.asked.Store(true)
	return nil
}

// knowsSharded asks the cluster whether it has sharded channels. Redisson's AUTO mode decides by the same question.
func (w *wire) knowsSharded(ctx context.Context) (bool, error) {
	err := w.redis.Do(ctx, w.redis.B().PubsubShardnumsub().Build()).Error()
	refusal, refused := rueidis.IsRedisErr(err)
	switch {
	case refused && strings.Contains(strings.ToLower(refusal.Error()), "unknown"):
		return false, nil // older than Redis 7
	case err != nil:
		return false, lua.Classify(err)
	default:
		return true, nil
	}
}

// subscribe starts listening; nil when the client is closed.
func (w *wire) subscribe(to call) *pubsub.Subscription {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.hub == nil {
		return nil
	}
	return w.hub.SubscribeTopic(to.channel, to.line.topic(), to.also...)
}

// node is the label under which leases of a lock are renewed together: the node that serves it. If it cannot be told, or
// is wrong, renewals still reach the right node, in worse company.
func (w *wire) node(lock string) string {
	if w.cluster == nil {
		return w.server
	}
	// Not a question to the cluster: the caller holds the lock already, and its lease runs.
	address, _ := w.cluster.Known(lua.Slot(lock))
	return address
}

// route tells the hub where a channel is served.
func (w *wire) route(ctx context.Context, channel string, wrong bool) (string, rueidis.Client, error) {
	if w.cluster == nil {
		return w.server, w.redis, nil
	}
	if !w.isSharded() {
		// A cluster forwards classic messages to all its nodes: any will do, and next time perhaps another.
		for _, node := range w.redis.Nodes() {
			return "any", node, nil
		}
		return "", nil, topology.ErrUnassigned
	}
	address, err := w.cluster.Master(ctx, lua.Slot(channel), wrong)
	if err != nil {
		return "", nil, err
	}
	node, ok := w.redis.Nodes()[address]
	if !ok {
		return "", nil, fmt.Errorf("node %s is not known to the rueidis client yet", address)
	}
	return address, node, nil
}

// clockOf returns the clock of the server that has a lock.
func (w *wire) clockOf(lock string) *serverClock {
	node := w.node(lock)
	if known, ok := w.clocks.Load(node); ok {
		return known.(*serverClock)
	}
	clock, _ := w.clocks.LoadOrStore(node, new(serverClock))
	return clock.(*serverClock)
}

func (w *wire) isSharded() bool { return w.sharded.Load() }

// handsOver tells whether a lock may be given to the next one in this process. Those of replicas would not be waited for.
func (w *wire) handsOver() bool {
	return w.options.HandOver != HandOverNone && w.options.SyncReplicas == 0 && !w.forbidden.Load()
}

// forbid notes that a command was refused, and what became of it without what a hand-over needs.
func (w *wire) forbid(refusal, outcome error) {
	var of *ServerError
	if outcome != nil || !errors.As(refusal, &of) {
		return
	}
	var why string
	switch of.Code {
	case "NOPERM":
		why = "the ACL of this user forbids what hand-overs need"
	case lua.NoCommand:
		why = "this server refuses scripts a command that hand-overs need, such as TIME"
	default:
		return
	}
	if w.forbidden.CompareAndSwap(false, true) {
		w.warn("holdfast: "+why+", so locks are announced to all who wait; "+
			"see \"Permissions\" in the README, or set Options.HandOver to HandOverNone", "refusal", of.Message)
	}
}

// givesAway tells whether locks may be given to waiters of other clients. A cluster that forwards messages between its nodes
// cannot tell who hears them.
func (w *wire) givesAway() bool {
	return w.handsOver() && w.options.HandOver == HandOverToAll && (w.cluster == nil || w.isSharded())
}

// companions are the channels that go with one on which the release of a lock is announced to all.
func (w *wire) companions(channel string) []string {
	if w.forbidden.Load() {
		return nil
	}
	return lua.PairedChannels(channel, w.client)
}

// listens tells that this client listens to anything, or has until a moment ago.
func (w *wire) listens() bool {
	hub := w.opened.Load()
	return hub != nil && hub.Listens()
}

// resume listens on, if it is not long since somebody did; else it returns nil.
func (w *wire) resume(to call) *pubsub.Subscription {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.hub == nil {
		return nil
	}
	return w.hub.Resume(to.channel, to.line.topic())
}

// close gives up all subscriptions and waits for what serves them.
func (w *wire) close() {
	w.mu.Lock()
	hub := w.hub
	w.hub, w.closed = nil, true
	w.mu.Unlock()
	if hub != nil {
		hub.Close()
	}
}
