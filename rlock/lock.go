package rlock

import (
	"context"
	"fmt"
	"time"

	"holdfast/internal/owner"
	"holdfast/lua"
	"holdfast/watchdog"
)

// Locker is what all kinds of locks have in common, so that code and locks compose. Every kind keeps what [Lock] promises:
// when its methods block, which errors they return, and that they are safe for concurrent use.
type Locker interface {
	// Name is the name of the lock.
	Name() string
	// Lock waits for the lock until ctx ends.
	Lock(ctx context.Context, lease time.Duration) (*Hold, error)
	// TryLock waits for the lock for as long as wait, or until ctx ends.
	TryLock(ctx context.Context, wait, lease time.Duration) (*Hold, error)
	// Unlock releases the innermost level that ctx's owner holds.
	Unlock(ctx context.Context) error
}

// Lock is a lock of some kind: reentrant ([Client.NewLock]), fair, fenced, or a side of a read-write lock. It excludes all
// clients, of this library and of Redisson, that use its name. It has no state of its own; any number of them may be made
// for one name. It is safe for concurrent use.
type Lock struct {
	client   *Client
	name     string
	standing string // the kind of its places
	side     side
	kind     kind
	line     lineName // of those who wait, if they may be given the lock
	invalid  error    // why this name can never be locked
}

var _ Locker = (*Lock)(nil)

func (c *Client) newLock(name, standing string, of side, k kind) *Lock {
	l := &Lock{client: c, name: name, standing: standing, side: of, kind: k}
	if k.passes() {
		l.line = k.call("").line
	}
	if name == "" {
		l.invalid = fmt.Errorf("%w: the name is empty", ErrInvalid)
	} else if c.wire.cluster != nil {
		if err := lua.CheckSlots(name, lua.Related(name)...); err != nil {
			l.invalid = fmt.Errorf("%w: %w", ErrInvalid, err)
		}
	}
	return l
}

// place is where an owner stands with its holds of this lock.
func (l *Lock) place(token owner.Token) place { return place{l.standing, l.name, token} }

// outlived tells whether Redis may keep a hold beyond its lease: what keeps one side of a read-write lock keeps its key.
func (l *Lock) outlived() bool { return l.standing == readWriteKind }

// Name is the name of the lock, which is also its key in Redis.
func (l *Lock) Name() string { return l.name }

// Server is what the Redis of the lock is called: Options.Server, or its address; "" for Sentinel and Cluster, whose
// addresses change, when nobody named them.
func (l *Lock) Server() string { return l.client.wire.name }

// Lock acquires the lock and blocks until it is free, or until ctx ends or the client is closed. While the server cannot be
// reached, is loading or fails over, it goes on trying: give ctx a deadline to bound that.
//
// The lock is held for lease at most, or with [Watchdog] until it is released. If ctx carries an owner (see [WithOwner])
// that holds the lock already, this adds a level to it: the lock then lives for the longer of what is left of its
// lease and of lease.
//
// It returns
//   - an error that matches both [ErrNotAcquired] and ctx's error if ctx ended the wait;
//   - [ErrClosed] if the client was closed;
//   - [ErrLost] if ctx's owner held the lock and Redis says that it does not any more;
//   - [ErrUpgrade], which matches [ErrNotAcquired], if this is a write lock, and ctx's owner holds the read lock and not this one;
//   - [ErrNotReplicated] if Options.SyncReplicas is set and too few replicas acknowledged it;
//   - a *[ServerError] at once if Redis refuses for good, and when the wait ends if it did not answer; with
//     [ErrOutcomeUnknown] if it may have given us the lock, which is then undone in the background;
//   - [ErrInvalid] for a name that [Client.NewLock] calls impossible, and for a lease of less than 3 ms or a negative one.
//
// After an error nothing is held by this call.
func (l *Lock) Lock(ctx context.Context, lease time.Duration) (*Hold, error) {
	return l.acquire(ctx, unlimited, lease)
}

// TryLock is [Lock.Lock] for at most wait. With [NoWait] it makes one attempt, which takes at most Options.CommandTimeout;
// a shorter wait than 10 ms counts as 10 ms, and a negative one is [ErrInvalid].
//
// When the time is over and somebody else still holds the lock, the error is a *[HeldError], which matches
// [ErrNotAcquired] and says who, and for how long still.
func (l *Lock) TryLock(ctx context.Context, wait, lease time.Duration) (*Hold, error) {
	if wait < 0 {
		return nil, fmt.Errorf("holdfast: lock %q: %w: the wait %v is negative: use Lock to wait without limit",
			l.name, ErrInvalid, wait)
	}
	return l.acquire(ctx, wait, lease)
}

// shortestWait gives an attempt time for an answer. Less would end nearly every attempt in doubt.
const shortestWait = 10 * time.Millisecond

// acquire is Lock and TryLock: wait may be unlimited.
func (l *Lock) acquire(ctx context.Context, wait, lease time.Duration) (hold *Hold, err error) {
	defer wrap(&err, l.name)
	if l.invalid != nil {
		return nil, l.invalid
	}
	renew := lease == Watchdog
	if renew {
		lease = l.client.options.WatchdogLease
	}
	if lease, err = wholeLease(lease); err != nil {
		return nil, err
	}
	limit := wait
	switch {
	case wait == NoWait:
		limit = l.client.options.CommandTimeout
	case wait != unlimited:
		limit = max(wait, shortestWait)
	}
	if !l.client.tasks.enter() {
		return nil, ErrClosed
	}
	defer l.client.tasks.leave()
	token, named := owner.From(ctx)
	if !named {
		token = owner.New()
	}
	window := l.client.options.FairWindow
	if wait != NoWait && wait != unlimited {
		window = limit
	}
	a := &attempt{
		client: l.client,
		lock:   l,
		ctx:    ctx,
		bid:    bid{lease: lease, waits: wait != NoWait, window: window, gift: lease},
		renew:  renew,
		token:  token,
		named:  named,
	}
	if renew {
		a.bid.gift = l.client.options.giftLease()
	}
	a.patience = &a.time
	a.patience.begin(ctx, l.client.closing, limit)
	a.bid.until = a.patience.until
	defer a.patience.stop()
	return a.run()
}

// wholeLease is a lease as it goes over the wire, if it can be used at all.
func wholeLease(lease time.Duration) (time.Duration, error) {
	whole := lease.Truncate(time.Millisecond)
	if whole <= watchdog.Drift(whole) {
		return 0, fmt.Errorf("%w: a lease of %v is over before it can be used: want at least 3ms, or rlock.Watchdog", ErrInvalid, lease)
	}
	return whole, nil
}

// Unlock releases the innermost level that ctx's owner holds, for code that has no [Hold] at hand. See [Hold.Unlock], which
// also works for a lock that was taken without an owner. It returns [ErrNotHeld] if ctx has no owner, or one that does
// not hold this lock through this client. If the owner lost the lock, it returns [ErrLost] once for each level, until the owner
// acquires the lock again; a client remembers its latest 1024 losses.
func (l *Lock) Unlock(ctx context.Context) (err error) {
	defer wrap(&err, l.name)
	token, named := owner.From(ctx)
	if !named {
		return fmt.Errorf("%w: the context has no owner: pass the hold's context or one of WithOwner, or call Unlock on the hold",
			ErrNotHeld)
	}
	if h := l.client.seats.find(l.place(token), l.side); h != nil {
		if level := h.leaveInnermost(); level != nil {
			return h.giveBack([]*Hold{level})
		}
	}
	if err := l.client.unlockLost(lostAt{l.place(token), l.side}); err != nil {
		return err
	}
	return fmt.Errorf("%w by the owner in this context", ErrNotHeld)
}

// ForceUnlock frees the lock whoever holds it, wakes a waiter, and returns whether it was held. Holds of this client end at
// once with [ErrLost], those of other clients, and one that is being acquired or handed over at this very moment, at their next
// renewal or nested lock. It blocks until ctx ends, and at most Options.CommandTimeout.
//
// Of a read-write lock the read side frees it of its readers, if there is no writer, and the write side of its writer and
// what that reads.
//
// Whoever held the lock may still be at work. Use it to repair, not to hurry.
func (l *Lock) ForceUnlock(ctx context.Context) (held bool, err error) {
	defer wrap(&err, l.name)
	// Before the command: a waiter of this client may take the lock before the answer is here, and keeps it.
	holdings := l.client.seats.holdings()
	released, err := exchange(ctx, l, func() (lua.Released, error) {
		return l.kind.forceUnlock(l.client.redis)
	})
	if err != nil {
		return false, err
	}
	l.client.refused(l, released.Refusal)
	for _, h := range holdings {
		if l.frees(h.lock, released.Held) {
			h.lost(errForced)
		}
	}
	return released.Held, nil
}

// frees tells whether a force unlock of l, which found the lock held or not, took another lock's holds.
func (l *Lock) frees(other *Lock, held bool) bool {
	if other.name != l.name || other.outlived() != l.outlived() {
		return false
	}
	if !l.outlived() {
		return true
	}
	return held && (l.side == exclusive || other.side == shared)
}
