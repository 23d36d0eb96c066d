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

// identity is the same for locks of the same nodes and names. A handle spares hashing many bytes.
type identity = unique.Handle[string]

// Lock is a lock over N independent masters, held while its owner holds it on a quorum, N/2+1, of
// them. It has no state: any number may be made of the same nodes. It is safe for concurrent use.
type Lock struct {
	name, server  string
	first         *rlock.Lock // whose client's tracer is told; nil without nodes
	nodes         []compose.Node
	quorum, spare int // how many nodes it needs, and how many it does without
	options       Options
	delay         lua.Delay // how long a node that may have forgotten locks is not counted
	identity      identity
	invalid       error // why this can never be locked: what is wrong with the nodes or the options
}

var _ rlock.Locker = (*Lock)(nil)

// New returns a lock over the given nodes: a plain lock ([rlock.Client.NewLock]) on each of N
// independent masters, usually all of one name. It has the default [Options]; see
// [Lock.WithOptions].
//
// New sends nothing. The first use returns [rlock.ErrInvalid] for what can never be locked: no
// locks at all, a lock that is not a plain one, two locks with the same [rlock.Lock.Server], and
// clients whose WatchdogLease differ. A server given under two names counts once. The clients'
// SyncReplicas is not used.
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

// NewOn is like [New], with options and a plain lock called name on each of the clients.
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

// Name returns the name of the lock. If the names of its locks differ, it returns all of them,
// sorted and joined by commas.
func (l *Lock) Name() string { return l.name }

// Server returns the names of the servers, sorted and joined by commas; "" if one has no name.
func (l *Lock) Server() string { return l.server }

// Lock acquires the lock. It blocks until the lock is free on a quorum of nodes or ctx ends. While
// too few nodes can be asked it keeps trying: give ctx a deadline to bound that.
//
// The lock is held for lease at most, or with [rlock.Watchdog] until it is released. If ctx carries
// an owner that holds the lock already, Lock adds a level to it, which needs a quorum as well.
//
// Lock returns
//   - a *[QuorumError], which says what each node replied. It matches [rlock.ErrNotAcquired] if
//     others held the lock, and [ErrNoQuorum] if too few nodes could be counted; also ctx's error
//     if ctx ended the wait. Lock returns it at once if waiting would not help, because too many
//     nodes refuse for good, or stay uncounted for longer than the wait;
//   - [rlock.ErrLost] if ctx's owner held the lock, and a quorum does not hold it any more;
//   - a *[QuorumError] that matches [rlock.ErrOutcomeUnknown] if ctx's owner holds the lock, and
//     too few nodes confirmed the new level in time;
//   - [rlock.ErrClosed] if the clients of too many nodes are closed;
//   - [rlock.ErrInvalid] for a lease of less than 3 ms, and one longer than [Options].MaxLease.
//
// After an error this call holds nothing: what a node may have granted is released in the
// background.
func (l *Lock) Lock(ctx context.Context, lease rlock.Lease) (*rlock.Hold, error) {
	return l.acquire(ctx, wait.Unlimited, lease)
}

// TryLock is like [Lock.Lock] but waits at most wait. A wait shorter than 10 ms counts as 10 ms,
// and a negative one is [rlock.ErrInvalid].
//
// With [rlock.NoWait] it asks all nodes once, which takes Options.NodeTimeout at most, counted from
// when the requests are sent. While very many others of this process are under way, the requests
// are queued before that, for the CommandTimeout of the first client at most. Right after an
// attempt that failed, or an Unlock, TryLock may fail because nodes have not released the lock yet.
func (l *Lock) TryLock(ctx context.Context, wait time.Duration, lease rlock.Lease,
) (*rlock.Hold, error) {
	return l.acquire(ctx, wait, lease)
}

// Unlock releases the innermost level that ctx's owner holds, for code without the hold. See
// [rlock.Hold.Unlock]. It returns [rlock.ErrNotHeld] if ctx has no owner, or one that does not hold
// this lock. It returns [rlock.ErrLost] once for each level that the owner had when it lost the
// lock, until the owner acquires it again; this process remembers its latest 1024 losses.
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

// wrap adds the name of the lock to an error that does not name it already.
func (l *Lock) wrap(err error) error {
	if _, names := err.(*rlock.LostError); names || err == nil { //nolint:errorlint // not inside
		return err
	}
	return fmt.Errorf("holdfast: lock %q: %w", l.name, err)
}
