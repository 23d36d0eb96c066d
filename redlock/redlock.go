package redlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
	"unique"

	"holdfast/internal/hooks"
	"holdfast/internal/owner"
	"holdfast/internal/wait"
	"holdfast/rlock"
)

// hook is what package rlock shows of itself.
var hook = hooks.Get[*rlock.Lock, *rlock.Hold]()

// identity is the same for locks of the same nodes and names. It is a handle because those are many
// bytes to hash and to compare whenever the lock is taken.
type identity = unique.Handle[string]

// Lock is a lock over N independent masters: who has it on a quorum of them, N/2+1, has it. It has
// no state of its own; any number of them may be made of the same nodes. It is safe for concurrent
// use.
type Lock struct {
	name     string
	server   string
	nodes    []hooks.Node
	quorum   int
	options  Options
	identity identity
	nodesErr error // what is wrong with the nodes
	invalid  error // why this can never be locked: that, or what is wrong with the options
}

var _ rlock.Locker = (*Lock)(nil)

// New returns the lock over the given nodes: a plain lock ([rlock.Client.NewLock]) on each of N
// independent masters, mostly all of one name. It has the default [Options]; see
// [Lock.WithOptions]. It sends nothing, and what can never be locked is refused by the first use,
// with [rlock.ErrInvalid]: no locks at all, one that is not a plain one, two on one server as far
// as [rlock.Lock.Server] tells, and clients whose WatchdogLease differ. A server that is there
// under two names counts once. The clients' SyncReplicas is not used.
func New(locks ...*rlock.Lock) *Lock {
	return newLock(nameOf(locks), Options{}, locks)
}

// NewOn is New for locks of one name on each of the clients.
func NewOn(name string, o Options, clients ...*rlock.Client) *Lock {
	locks := make([]*rlock.Lock, len(clients))
	for i, c := range clients {
		if c != nil {
			locks[i] = c.NewLock(name)
		}
	}
	return newLock(name, o, locks)
}

func newLock(name string, o Options, locks []*rlock.Lock) *Lock {
	l := &Lock{name: name, quorum: len(locks)/2 + 1}
	l.nodesErr = l.setNodes(locks)
	return l.WithOptions(o)
}

// WithOptions returns the same lock with other options. Those that cannot work are refused by the
// first use.
func (l *Lock) WithOptions(o Options) *Lock {
	with := *l
	if with.invalid = l.nodesErr; with.invalid == nil {
		with.options, with.invalid = o.withDefaults(l.nodes)
	}
	return &with
}

// Name is the name of the lock; if the nodes call it differently, all their names.
func (l *Lock) Name() string { return l.name }

// Server is what the servers are called, all together, in whatever order they were given; "" if one
// has no name.
func (l *Lock) Server() string { return l.server }

// Lock acquires the lock, and blocks until it is free on a quorum of nodes, or until ctx ends.
// While too few nodes can be asked it goes on trying: give ctx a deadline to bound that.
//
// The lock is held for lease at most, or with [rlock.Watchdog] until it is released: then each
// node's part is renewed by its client's watchdog, and a node that missed the acquisition joins at
// the next renewal. If ctx carries an owner that holds the lock already, this adds a level to it,
// which takes a quorum as well.
//
// It returns
//   - a *[QuorumError], which says what each node answered. It matches [rlock.ErrNotAcquired] if
//     others held the lock, and [ErrNoQuorum] if too few nodes could be counted; also ctx's error
//     if that ended the wait. It is returned at once if waiting would not help, because too many
//     nodes refuse for good, or are not counted for longer than that;
//   - [rlock.ErrLost] if ctx's owner held the lock, and a quorum of nodes does not say so any more;
//   - a *[QuorumError] that matches [rlock.ErrOutcomeUnknown] if ctx's owner holds the lock, and
//     too few nodes said so in time;
//   - [rlock.ErrClosed] if the clients of too many nodes are closed;
//   - [rlock.ErrInvalid] for a lease of less than 3 ms or a negative one, and for one longer than
//     [Options].MaxLease.
//
// After an error nothing is held by this call: what may have been taken on a node is released in
// the background.
func (l *Lock) Lock(ctx context.Context, lease time.Duration) (*rlock.Hold, error) {
	return l.acquire(ctx, wait.Unlimited, lease)
}

// TryLock is [Lock.Lock] for at most wait. With [rlock.NoWait] all nodes are asked once, which
// takes Options.NodeTimeout at most, counted from when the questions are sent: while very many
// others of this process are under way they stand in line before that, for the CommandTimeout of
// the first client at most. Right after an attempt that failed, or an Unlock, it may meet on some
// nodes what those are still releasing there. A shorter wait than 10 ms counts as 10 ms, and a
// negative one is [rlock.ErrInvalid].
func (l *Lock) TryLock(ctx context.Context, wait, lease time.Duration) (*rlock.Hold, error) {
	if wait < 0 {
		return nil, l.wrap(
			fmt.Errorf(
				"%w: the wait %v is negative: use Lock to wait without limit",
				rlock.ErrInvalid,
				wait,
			),
		)
	}
	return l.acquire(ctx, wait, lease)
}

// shortestWait gives the nodes time for an answer.
const shortestWait = 10 * time.Millisecond

func (l *Lock) acquire(ctx context.Context, limit, lease time.Duration) (*rlock.Hold, error) {
	if l.invalid != nil {
		return nil, l.wrap(l.invalid)
	}
	renew := lease == rlock.Watchdog
	if renew {
		lease = l.nodes[0].WatchdogLease()
	}
	lease, err := l.options.checkLease(lease)
	if err != nil {
		return nil, l.wrap(err)
	}
	token, ok := owner.From(ctx)
	if !ok {
		token = owner.New()
		ctx = owner.With(ctx, token)
	}
	waits := limit != rlock.NoWait
	switch {
	case !waits:
		limit = l.nodes[0].CommandTimeout()
	case limit != wait.Unlimited:
		limit = max(limit, shortestWait)
	}
	at := attempt{
		lock:   l,
		budget: wait.NewBudget(ctx, nil, limit),
		waits:  waits,
		lease:  lease,
		renew:  renew,
		token:  token,
	}
	defer at.budget.Stop()
	hold, err := at.run()
	if err != nil {
		return nil, l.wrap(err)
	}
	return hold, nil
}

// Unlock releases the innermost level that ctx's owner holds, for code that has no hold at hand.
// See [rlock.Hold.Unlock]. It returns [rlock.ErrNotHeld] if ctx has no owner, or one that does not
// hold this lock, and [rlock.ErrLost] once for each level that the owner had when it lost the lock,
// until the owner acquires it again; this process remembers its latest 1024 losses.
func (l *Lock) Unlock(ctx context.Context) error {
	token, ok := owner.From(ctx)
	if !ok {
		return l.wrap(
			fmt.Errorf(
				"%w: the context has no owner: pass the hold's context or one of rlock.WithOwner, or call Unlock on the hold",
				rlock.ErrNotHeld,
			),
		)
	}
	key := sessionKey{l.identity, token}
	acquisitions := lostAcquisitions.Of(key)
	if s := sessions.Find(key); s != nil {
		if a := heldIn(s); a != nil {
			acquisitions = append(acquisitions, a)
		}
	}
	for _, a := range slices.Backward(acquisitions) {
		for _, hold := range a.holds() {
			// One that somebody else releases at this moment is passed over.
			if err := hold.Unlock(ctx); !errors.Is(err, rlock.ErrNotHeld) {
				return err
			}
		}
	}
	return l.wrap(fmt.Errorf("%w by the owner in this context", rlock.ErrNotHeld))
}

func (l *Lock) wrap(err error) error {
	var lost *rlock.LostError
	if errors.As(err, &lost) {
		return err // it names the lock
	}
	return fmt.Errorf("holdfast: redlock %q: %w", l.name, err)
}
