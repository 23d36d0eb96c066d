package redlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unique"

	"holdfast/internal/compose"
	"holdfast/internal/owner"
	"holdfast/internal/wait"
	"holdfast/lua"
	"holdfast/rlock"
)

// identity is the same for locks of the same nodes and names. A handle is faster to hash than a
// long text.
type identity = unique.Handle[string]

// Lock is a lock on N independent masters. An owner holds it while it holds a lock on a quorum of
// N/2+1 masters. A Lock has no state, so you can create any number for the same nodes. A Lock is
// safe for concurrent use.
type Lock struct {
	name, server  string
	first         *rlock.Lock // the tracer of its client is used; nil without nodes
	nodes         []compose.Node
	quorum, spare int // how many nodes are necessary, and how many may be missing
	options       Options
	delay         lua.Delay // how long a node that may have forgotten locks does not count
	identity      identity
	invalid       error // what is wrong with the nodes or the options; nil if nothing is
}

var _ rlock.Locker = (*Lock)(nil)

// New returns a lock on the given nodes, with the default [Options]. Pass a plain lock
// ([rlock.Client.NewLock]) of each of N independent masters, usually all with the same name. See
// [Lock.WithOptions].
//
// New sends nothing. The first use returns [rlock.ErrInvalid] for nodes that can never work: no
// locks at all, a lock of another kind, two locks with the same [rlock.Lock.Server], or clients
// with different WatchdogLease. A server with two names counts as one node. New ignores
// SyncReplicas of the clients.
func New(locks ...*rlock.Lock) *Lock {
	var names []string
	for _, lock := range locks {
		if lock != nil {
			names = append(names, lock.Name())
		}
	}
	slices.Sort(names)
	l := &Lock{name: strings.Join(slices.Compact(names), ","), quorum: len(locks)/2 + 1}
	l.spare, l.invalid = len(locks)-l.quorum, l.setNodes(locks)
	if len(locks) > 0 {
		l.first = locks[0]
	}
	return l.WithOptions(Options{})
}

// NewOn is like [New], with options and a plain lock with the given name on each client.
func NewOn(name string, o Options, clients ...*rlock.Client) *Lock {
	locks := make([]*rlock.Lock, len(clients))
	for i, c := range clients {
		if c != nil {
			locks[i] = c.NewLock(name)
		}
	}
	l := New(locks...).WithOptions(o)
	if len(clients) == 0 || clients[0] == nil {
		l.name = name
	}
	return l
}

// setNodes makes the locks the nodes of l, or returns why they cannot be.
func (l *Lock) setNodes(locks []*rlock.Lock) error {
	if len(locks) == 0 {
		return compose.Invalid("there are no nodes; pass one lock for each node")
	}
	var nodes []compose.Node
	var servers, ids []string
	for i, lock := range locks {
		if lock == nil {
			return compose.Invalid("node %d of %d is nil; pass only locks that NewLock returns",
				i+1, len(locks))
		}
		node, err := hook.Node(lock)
		if err != nil {
			return err
		}
		server := node.Server()
		twin := slices.IndexFunc(nodes, func(n compose.Node) bool {
			return n.Client() == node.Client() || server != "" && n.Server() == server
		})
		if twin >= 0 {
			return compose.Invalid("nodes %d and %d are on one server (%s); a RedLock needs "+
				"independent servers", twin+1, i+1, cmp.Or(server, "the same client"))
		}
		nodes, servers = append(nodes, node), append(servers, server)
		ids = append(ids, nodeID(node))
		if lease, first := node.WatchdogLease(), nodes[0].WatchdogLease(); lease != first {
			return compose.Invalid("the clients of the nodes have different "+
				"rlock.Options.WatchdogLease (%v and %v); set the same value", first, lease)
		}
	}
	slices.Sort(ids) // the order of the arguments does not matter
	l.nodes, l.identity = nodes, unique.Make(strings.Join(ids, "\n"))
	if slices.Sort(servers); servers[0] != "" {
		l.server = strings.Join(servers, ",")
	}
	return nil
}

// nodeID identifies a node by its client and its name.
func nodeID(node compose.Node) string { return node.Client() + " " + node.Name() }

// Name returns the name of the lock. If its locks have different names, Name returns all names,
// sorted and joined by commas.
func (l *Lock) Name() string { return l.name }

// Server returns the names of the servers, sorted and joined by commas, or "" if a server has no
// name.
func (l *Lock) Server() string { return l.server }

// Lock acquires the lock and holds it for at most lease, or with [rlock.Watchdog] until you release
// the hold. If ctx carries an owner that holds the lock already, Lock returns a nested hold, which
// needs a quorum as well.
//
// Lock blocks until a quorum of nodes grants the lock, or ctx ends. While too few nodes respond,
// Lock keeps trying, so give ctx a deadline to limit the wait.
//
// Lock returns
//   - a *[QuorumError] with the reply of each node. The error matches [rlock.ErrNotAcquired] if
//     others held the lock, [ErrNoQuorum] if too few nodes counted, and the error of ctx if ctx
//     ended the wait. Lock returns the error at once if waiting does not help, because too many
//     nodes reject the request permanently, or will not count until after the wait;
//   - [rlock.ErrLost] if the owner held the lock, and no longer holds a quorum;
//   - a *[QuorumError] that matches [rlock.ErrOutcomeUnknown] if the owner holds the lock, and too
//     few nodes confirmed the nested hold in time;
//   - [rlock.ErrClosed] if the clients of too many nodes are closed;
//   - [rlock.ErrInvalid] for a lease from 0 to below 3 ms, or above Options.MaxLease.
//
// After an error, this call holds nothing, and releases all granted parts in the background.
func (l *Lock) Lock(ctx context.Context, lease rlock.Lease) (*rlock.Hold, error) {
	return l.acquire(ctx, wait.Unlimited, lease)
}

// TryLock is like [Lock.Lock], but waits for at most wait. A positive wait below 10 ms counts as 10
// ms, and a negative wait is [rlock.ErrInvalid].
//
// With [rlock.NoWait], TryLock asks all nodes once, and waits for at most Options.NodeTimeout after
// it has sent the requests. While very many requests of this process are under way, new requests
// queue first, for at most the CommandTimeout of the first client. Right after a failed call or an
// Unlock, TryLock may fail, because some nodes have not released the lock yet.
func (l *Lock) TryLock(ctx context.Context, wait time.Duration, lease rlock.Lease,
) (*rlock.Hold, error) {
	return l.acquire(ctx, wait, lease)
}

// Unlock releases the latest hold of the owner in ctx, for code without the hold. Unlock blocks
// like [rlock.Hold.Unlock]. Unlock returns [rlock.ErrNotHeld] if ctx has no owner, or if the owner
// does not hold this lock. If the owner lost the lock, Unlock returns [rlock.ErrLost] once for each
// hold, until the owner acquires the lock again. A process remembers its latest 1024 losses.
func (l *Lock) Unlock(ctx context.Context) error {
	token, _ := owner.From(ctx)
	if token == 0 {
		return l.wrap(fmt.Errorf("%w: ctx carries no owner; call Unlock on the hold, or pass "+
			"hold.Context() or a context from rlock.WithOwner", rlock.ErrNotHeld))
	}
	key := sessionKey{l.identity, token}
	acquisitions := lostAcquisitions.Of(key)
	if s := sessions.Find(key); s != nil {
		if a := heldIn(s); a != nil {
			acquisitions = append(acquisitions, a)
		}
	}
	for _, a := range slices.Backward(acquisitions) {
		a.mu.Lock()
		levels := slices.Clone(a.levels)
		a.mu.Unlock()
		for _, level := range slices.Backward(levels) {
			// Skip a hold that another goroutine is releasing.
			if err := level.hold.Unlock(); !errors.Is(err, rlock.ErrNotHeld) {
				return err
			}
		}
	}
	return l.wrap(fmt.Errorf("%w: the owner in ctx does not hold this RedLock", rlock.ErrNotHeld))
}

// wrap adds the name of the lock to an error without the name.
func (l *Lock) wrap(err error) error {
	if _, names := err.(*rlock.LostError); names || err == nil { //nolint:errorlint // not inside
		return err
	}
	return fmt.Errorf("holdfast: lock %q: %w", l.name, err)
}
