package rlock

import (
	"context"
	"fmt"
	"slices"
	"time"

	"holdfast/internal/owner"
	"holdfast/internal/transport"
	"holdfast/internal/wire"
	"holdfast/lua"
)

// Locker is the interface of all kinds of locks. Each kind keeps the promises of [Lock] about
// blocking, errors, and concurrent use.
type Locker interface {
	// Name returns the name of the lock.
	Name() string
	// Lock waits for the lock until ctx ends.
	Lock(ctx context.Context, lease Lease) (*Hold, error)
	// TryLock waits for the lock until wait is over or ctx ends.
	TryLock(ctx context.Context, wait time.Duration, lease Lease) (*Hold, error)
	// Unlock releases the latest hold of the owner in ctx.
	Unlock(ctx context.Context) error
}

// Lock is a lock of any kind: reentrant ([Client.NewLock]), non-reentrant, fair, fenced, or one
// side of a read-write lock. Lock excludes all clients of holdfast and Redisson that use its name.
// A Lock has no state, so you can create any number for the same name. A Lock is safe for
// concurrent use.
type Lock struct {
	client *Client
	name   string
	traits
	kind    kind
	waiting *waiting      // of a caller without an owner yet
	invalid error         // why nobody can ever acquire this name
	atLeast time.Duration // see AtLeast; 0 without
}

var _ Locker = (*Lock)(nil)

func (c *Client) newLock(name string, t traits, k kind) *Lock {
	l := &Lock{client: c, name: name, traits: t, kind: k, waiting: k.waiting("", false)}
	if name == "" {
		l.invalid = invalid("the name is empty; pass a name")
	} else if err := wire.CheckDerived(name); err != nil {
		l.invalid = invalid("name %w", err)
	} else if c.transport.Clustered() {
		if err := wire.CheckSlots(name, wire.Related(name)...); err != nil {
			l.invalid = invalid("%w", err)
		}
	}
	return l
}

// heldBy returns the acquisition of an owner, or nil if the owner holds nothing.
func (l *Lock) heldBy(token owner.Token) *acquisition {
	if s := l.client.sessions.Find(sessionKey{l.family, l.name, token}); s != nil {
		return held(s, l.mode)
	}
	return nil
}

// Name returns the name of the lock, after Options.NameMapper. The name is also the key in Redis.
func (l *Lock) Name() string { return l.name }

// Server returns Options.Server, or else the address of the server. Server returns "" for Sentinel
// and Cluster without Options.Server, because addresses change there.
func (l *Lock) Server() string { return l.client.transport.Name() }

// Unlock releases the latest hold of the owner in ctx, for code without the [Hold]. [Hold.Unlock]
// also works for a lock that was acquired without an owner.
//
// Unlock blocks like [Hold.Unlock]. Unlock returns [ErrNotHeld] if ctx has no owner, or if the
// owner does not hold this lock through this client. If the owner lost the lock, Unlock returns
// [ErrLost] once for each hold, until the owner acquires the lock again. A client remembers its
// latest 1024 losses.
func (l *Lock) Unlock(ctx context.Context) (err error) {
	defer wrap(&err, l.name)
	token, _ := owner.From(ctx)
	if token == 0 {
		return fmt.Errorf("%w: ctx carries no owner; call Unlock on the hold, or pass "+
			"hold.Context() or a context from rlock.WithOwner", ErrNotHeld)
	}
	if a := l.heldBy(token); a != nil {
		if level := a.beginInnermost(); level != nil {
			err := a.Release(level.without())
			level.trace.Load().released(err, false)
			return err
		}
	}
	if err := l.client.unlockLost(lossKey{sessionKey{l.family, l.name, token}, l.mode}); err != nil {
		return err
	}
	return fmt.Errorf("%w: the owner in ctx does not hold this lock through this client", ErrNotHeld)
}

// ForceUnlock releases the lock of any owner, wakes a waiter, and reports whether the lock was
// held. Use ForceUnlock to repair, not to save time, because the former holder may still be at
// work. It deletes the key even if the key is a hash that is not a lock.
//
// ForceUnlock blocks until Redis responds, ctx ends, or Options.CommandTimeout passes. If a
// connection fails that was in use within the last second, ForceUnlock returns [ErrOutcomeUnknown].
// If an idle connection fails, ForceUnlock asks who the owners are, and tries again unless all
// owners have changed.
//
// Holds of this client end at once with [ErrLost]. Holds of other clients end at their next renewal
// or nested hold, and so does a hold of this client that is just being acquired or handed over. No
// local turn follows such a hold.
//
// On a read-write lock, the read side ends all readers if there is no writer. The write side ends
// the writer and the reads of that writer.
func (l *Lock) ForceUnlock(ctx context.Context) (held bool, err error) {
	defer wrap(&err, l.name)
	l.client.forced.begin(l.name, l.client.options.WatchdogLease)
	defer l.client.forced.end(l.name)
	// List the acquisitions before the command, because a waiter may acquire the lock before the
	// reply, and must keep the lock.
	acquisitions := l.client.acquisitions()
	r, err := l.forceUnlock(ctx)
	if err != nil {
		return false, err
	}
	l.client.reportRefusal(l, r.Refusal)
	for _, a := range acquisitions {
		if a.lock.name == l.name && l.frees(a.lock, r.Held) {
			a.lose(ErrForced)
		}
	}
	return r.Held, nil
}

// forceUnlock sends the command, and sends it again if the connection was closed while it was idle.
// If Redis executed the first command, another owner may have the lock since then. So forceUnlock
// does not send the command again if all owners have changed.
func (l *Lock) forceUnlock(ctx context.Context) (r lua.Released, err error) {
	b := l.exchangeBudget(ctx)
	var before lua.State
	idle := l.client.calls.Quiet()
	if idle {
		before, err = l.inspectWithin(b)
		switch {
		case err == nil:
		case l.client.transport.Permanent(err): // ForceUnlock may have to repair the key
			idle = false
		default:
			return r, err
		}
	}
	for sends := 1; ; sends++ {
		r, err = exchange(b, l, transport.Release, l.kind.forceUnlock)
		if !idle || !transport.Lost(err) || sends == transport.MostSends {
			return r, err
		}
		now, failed := l.inspectWithin(b)
		if failed != nil {
			return r, err
		}
		same := func(a, b lua.Hold) bool { return a.Owner == b.Owner }
		// If an owner is still there, Redis has not executed the command, whoever else has come or gone.
		// Names are used only once, and there may be many readers.
		stays := slices.ContainsFunc(now.Holds, func(h lua.Hold) bool {
			return slices.ContainsFunc(before.Holds, func(b lua.Hold) bool { return same(b, h) })
		})
		if !stays && len(before.Holds)+len(now.Holds) > 0 {
			return lua.Released{Held: true}, nil
		}
	}
}

// frees reports whether a ForceUnlock of l also freed other, a lock of the same name. held says
// whether the command found l held. Read-write locks and other locks ignore the entries of each
// other.
func (l *Lock) frees(other *Lock, held bool) bool {
	if !l.sharesKey || !other.sharesKey {
		return l.sharesKey == other.sharesKey
	}
	return held && (l.mode == exclusiveMode || other.mode == sharedMode) // and a writer's reads
}
