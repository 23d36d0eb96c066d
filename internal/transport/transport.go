// Package transport has everything that depends on the kind of server: how commands are sent so
// that callers can leave ([Calls]), how messages travel, which node serves which lock, and which
// commands the server rejects. Package transport does not know who holds a lock.
package transport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"holdfast/internal/docs"
	"holdfast/internal/rediserr"
	"holdfast/internal/wire"
	"holdfast/pubsub"
)

// Options configures a [Transport].
type Options struct {
	Client string // the id of the client
	Server string // the name of the server; "" for its address
	Logger *slog.Logger

	// These select the channels on a cluster. If both are false, the transport uses both kinds if the
	// cluster has sharded channels.
	Classic, Sharded bool

	ToThisClient   bool // a release may give a lock to the next waiter of this client
	ToOtherClients bool // and to waiters of other clients

	// OnGrant is called with messages that grant a lock to a waiter here. It must not block.
	OnGrant func(channel, message string)
	// OnLost is called when a subscription loses its connection. It must not block.
	OnLost func()
	// Warn logs a warning for the operator, without blocking.
	Warn func(message string, details ...any)
}

// Transport connects to one Redis: a single node, a Sentinel group or a cluster. All methods are
// safe for concurrent use.
type Transport struct {
	redis    rueidis.Client
	options  Options
	cluster  *cluster  // nil without a cluster
	endpoint *endpoint // nil unless the address of a single server may move to another server
	server   string    // the name of the only node, without a cluster
	name     string    // the name in all processes; "" without a name if the address may change

	// forbidden is until when the transport does not try hand-overs, because the ACL or the server
	// rejects what they need; nil if they were never rejected.
	forbidden atomic.Pointer[time.Time]
	warned    atomic.Bool // of rejected hand-overs
	writes    atomic.Bool // the server has accepted a write
	clocks    sync.Map    // of *Clock, by node

	// apart says which keys the server does not take in one command although it looks like a single
	// node. Such a server is sharded behind a proxy.
	apart atomic.Int32

	asking   sync.Mutex                 // held during a request to the cluster
	hub      atomic.Pointer[pubsub.Hub] // nil until the kinds of channels are known
	channels atomic.Int32               // wire.Channels, once there is a hub
	closed   atomic.Bool
}

// New returns a transport on a rueidis client. New sends nothing.
func New(redis rueidis.Client, o Options) *Transport {
	t := &Transport{redis: redis, options: o, server: "the master", name: o.Server}
	switch redis.Mode() {
	case rueidis.ClientModeCluster:
		t.cluster = &cluster{client: redis}
		t.redis = direct{redis, t.cluster}
	case rueidis.ClientModeStandalone:
		t.endpoint = &endpoint{Client: redis, wrote: &t.writes, moved: t.redial,
			ended: make(chan struct{})}
		t.redis = t.endpoint
		// With replicas, the transport does not know which of the addresses is the master.
		if nodes := redis.Nodes(); len(nodes) == 1 {
			for address := range nodes {
				t.server, t.name = address, cmp.Or(o.Server, address)
			}
		}
	}
	if t.cluster == nil || o.Classic || o.Sharded {
		channels := wire.Classic
		if t.cluster != nil && o.Sharded {
			channels = wire.Sharded
		}
		t.open(channels)
	}
	return t
}

// open starts the hub for these kinds of channels.
func (t *Transport) open(channels wire.Channels) {
	paired := func(channel string) []string {
		if !t.HandOvers().OtherClients {
			return nil
		}
		return wire.PairedChannels(channel, t.options.Client)
	}
	unpaired := func(_ string, refusal error) { t.Forbid(rediserr.Classify(refusal), nil) }
	options := pubsub.Options{Route: t.route, Sharded: channels != wire.Classic, Paired: paired,
		OnDirect: t.options.OnGrant, OnLost: t.options.OnLost, OnUnpaired: unpaired,
		Logger: t.options.Logger}
	if channels == wire.Both {
		options.Classic = wire.ClassicChannels
	}
	t.channels.Store(int32(channels))
	t.hub.Store(pubsub.New(options))
	if t.closed.Load() {
		t.Close() // the other Close may have missed the hub
	}
}

// Ready asks a cluster for its topology and its kind of channels, unless both are known. Ready
// blocks for the replies, and returns an error if there is no reply. Without a cluster, Ready does
// nothing.
func (t *Transport) Ready(ctx context.Context) error {
	if t.cluster == nil || t.hub.Load() != nil && t.cluster.ranges.Load() != nil {
		return nil
	}
	t.asking.Lock()
	defer t.asking.Unlock()
	if _, err := t.cluster.master(ctx, 0, false); err != nil && !errors.Is(err, errUnassigned) {
		return rediserr.Classify(err)
	}
	if t.hub.Load() == nil {
		// Redisson's AUTO mode decides by the same request.
		err := t.redis.Do(ctx, t.redis.B().PubsubShardnumsub().Build()).Error()
		refusal, refused := rueidis.IsRedisErr(err)
		// A server before Redis 7 does not know the command.
		unknown := refused && strings.Contains(strings.ToLower(refusal.Error()), "unknown")
		if err != nil && !unknown {
			err = rediserr.Classify(err)
			var e *rediserr.Error
			if rediserr.HasCode(err, "NOPERM") && errors.As(err, &e) {
				e.Advice += "; or set rlock.Options.PubSub to the same value in every process"
			}
			return err
		}
		channels := wire.Both
		if unknown {
			channels = wire.Classic
		}
		t.open(channels)
	}
	return nil
}

// Clustered reports whether the Redis is a cluster.
func (t *Transport) Clustered() bool { return t.cluster != nil }

// Name returns the name of the Redis in all processes; "" if there is none.
func (t *Transport) Name() string { return t.name }

// Slot returns the slot of a lock on a cluster, or on a server that has turned out to have slots.
// On any other server, Slot returns 0.
func (t *Transport) Slot(lock string) uint16 {
	if t.cluster == nil && t.apart.Load() == together {
		return 0
	}
	return wire.Slot(lock)
}

// Which keys a server takes in one command. The value only grows.
const (
	together int32 = iota // all keys, or on a cluster all keys of a slot
	bySlot                // the keys of a slot, although the server looks like a single node
	oneByOne              // the keys of a lock
)

// Rejected records that the server rejected a command for these locks. If the reason is that their
// keys are in different slots, the transport never sends such a command again.
func (t *Transport) Rejected(err error, locks []string) {
	if t.cluster != nil || len(locks) < 2 || !rediserr.HasCode(err, "CROSSSLOT") {
		return
	}
	found := oneByOne
	for _, lock := range locks {
		if wire.Slot(lock) != wire.Slot(locks[0]) {
			found = bySlot
		}
	}
	for known := t.apart.Load(); known < found && !t.apart.CompareAndSwap(known, found); {
		known = t.apart.Load()
	}
}

// OneByOne reports whether the server rejects a command with two locks, even in the same slot.
func (t *Transport) OneByOne() bool { return t.apart.Load() == oneByOne }

// Together reports whether a command may have all of these locks, as far as the transport knows.
func (t *Transport) Together(locks []string) bool {
	for _, lock := range locks {
		if t.Slot(lock) != t.Slot(locks[0]) {
			return false
		}
	}
	return len(locks) < 2 || !t.OneByOne()
}

// Node returns the node that served a lock in the last known topology. Node sends nothing, because
// the caller's lease is running. A wrong node only makes batches of renewals smaller.
func (t *Transport) Node(lock string) string {
	if t.cluster == nil {
		return t.server
	}
	return t.cluster.remembered(wire.Slot(lock))
}

// Clock returns the clock of the server that has a lock.
func (t *Transport) Clock(lock string) *Clock {
	node := t.Node(lock)
	clock, known := t.clocks.Load(node)
	if !known {
		clock, _ = t.clocks.LoadOrStore(node, new(Clock))
	}
	return clock.(*Clock)
}

// Permanent reports whether no retry helps after err, however long the caller waits.
func (t *Transport) Permanent(err error) bool {
	permanent := rediserr.ClassOf(err) == rediserr.ClassPermanent
	single := t.redis.Mode() == rueidis.ClientModeStandalone
	switch {
	case rediserr.HasCode(err, "READONLY"):
		// Sentinel and Cluster replace the server behind a name. rueidis closes the old connections, and
		// for a moment may still reach a master that has become a replica. The address of a single server
		// may also move to another server. A server that was a replica from the start is a wrong address.
		return single && !t.writes.Load()
	case single && (errors.Is(err, rueidis.ErrClosing) || rediserr.HasCode(err, "MOVED", "ASK")):
		return true // only its owner closes a client, and the client follows no redirection
	}
	return permanent
}

// Redis returns the client to send commands with.
func (t *Transport) Redis() rueidis.Client { return t.redis }

// Wrote records that the server has accepted a write, so the server is or was not a replica.
func (t *Transport) Wrote() {
	if !t.writes.Load() {
		t.writes.Store(true)
	}
}

// redial moves the subscriptions away from a server that commands no longer use.
func (t *Transport) redial() {
	if hub := t.hub.Load(); hub != nil {
		hub.Redial()
	}
}

// Subscribe starts listening. Subscribe returns nil until the kind of channels is known.
func (t *Transport) Subscribe(to pubsub.Topic) *pubsub.Subscription {
	if hub := t.hub.Load(); hub != nil {
		return hub.Subscribe(to)
	}
	return nil
}

// Resume subscribes to a channel that this client receives together with its paired channels. For
// any other channel, Resume returns nil.
func (t *Transport) Resume(to pubsub.Topic) *pubsub.Subscription {
	if hub := t.hub.Load(); hub != nil {
		return hub.Resume(to)
	}
	return nil
}

// Listens reports whether this client listens to anything, or did until a moment ago.
func (t *Transport) Listens() bool {
	hub := t.hub.Load()
	return hub != nil && hub.Listens()
}

// route returns the node that serves a channel.
func (t *Transport) route(ctx context.Context, channel string, wrong bool,
) (string, rueidis.Client, error) {
	if t.cluster == nil {
		return t.server, t.redis, nil
	}
	if t.Channels() == wire.Classic {
		// A cluster forwards classic messages to all nodes, so any node works. The order of the map
		// varies, so not all clients choose the same node.
		for _, node := range t.redis.Nodes() {
			return "any", node, nil
		}
		return "", nil, errUnassigned
	}
	address, err := t.cluster.master(ctx, wire.Slot(channel), wrong)
	if err != nil {
		return "", nil, err
	}
	node, ok := t.redis.Nodes()[address]
	if !ok {
		return "", nil, fmt.Errorf("the rueidis client has not found the node %s yet; retry later",
			address)
	}
	return address, node, nil
}

// Channels returns the kinds of channels on which messages travel.
func (t *Transport) Channels() wire.Channels { return wire.Channels(t.channels.Load()) }

// HandOvers says to whom a release may give a lock now, and how messages travel.
type HandOvers struct {
	ThisClient   bool          // to the next waiter of this client
	OtherClients bool          // to waiters of other clients; needs Counted
	Channels     wire.Channels // on which messages travel
	// Counted reports whether a server counts all receivers of a message that it publishes. A node of
	// a cluster with classic channels counts only the receivers that are connected to this node.
	Counted bool
}

// HandOvers returns to whom a release may give a lock now.
func (t *Transport) HandOvers() HandOvers {
	h := HandOvers{Channels: wire.Channels(t.channels.Load())}
	h.Counted = t.cluster == nil || h.Channels != wire.Classic
	until := t.forbidden.Load()
	if !t.options.ToThisClient || until != nil && time.Now().Before(*until) {
		return h
	}
	h.ThisClient = true
	h.OtherClients = t.options.ToOtherClients && h.Counted
	return h
}

// ForbiddenFor is how long the client does not try again what the ACL has rejected: hand-overs, and
// the record of the client's process. The client tries again, because a right may be missing only
// for a moment.
const ForbiddenFor = time.Minute

// Forbid disables hand-overs for a minute if the server rejected a hand-over because of the ACL, or
// because scripts may not call a command. outcome is the error of the same command without the
// hand-over. If outcome is not nil, or the server had another reason, Forbid does nothing.
func (t *Transport) Forbid(refusal, outcome error) {
	var of *rediserr.Error
	if outcome != nil || !errors.As(refusal, &of) {
		return
	}
	why := map[string]string{
		"NOPERM":           "the ACL of this user does not allow hand-overs",
		rediserr.NoCommand: "scripts on this server may not call a command that hand-overs need",
	}[of.Code]
	if why == "" {
		return
	}
	until := time.Now().Add(ForbiddenFor)
	t.forbidden.Store(&until)
	if t.warned.CompareAndSwap(false, true) {
		t.options.Warn("holdfast: "+why+", so each release is announced to all waiters, and "+
			"holdfast tries hand-overs again every minute; see "+docs.Base+"permissions.md, or set "+
			"Options.HandOver to HandOverNone",
			"refusal", of.Message)
	}
}

// Close ends all subscriptions and waits for their goroutines.
func (t *Transport) Close() {
	t.closed.Store(true)
	if hub := t.hub.Load(); hub != nil {
		hub.Close()
	}
	if t.endpoint != nil {
		t.endpoint.close()
	}
}
