package rlock

import (
	"context"
	"time"

	"github.com/redis/rueidis"

	"holdfast/internal/compose"
	"holdfast/internal/flight"
	"holdfast/internal/transport"
	"holdfast/internal/wait"
	"holdfast/lua"
)

// Internals is for packages multilock, redlock, once, leader and rlocktest. It is not for users.
func Internals(compose.Access) internals { return internals{} } //nolint:revive // has no other use

// internals has methods that are safe for concurrent use.
type internals struct{}

// The following are for multilock and redlock.

// OnEnd calls f with the reason when a hold ends, before its context ends; at once if it has ended.
// f must not block.
func (internals) OnEnd(h *Hold, f func(reason error)) { h.level.onEnd(f) }

// NewHold is [NewHold] for a lock that is made of others. kept is another hold of the same level,
// for the lock itself: it keeps nothing of the caller reachable. So do the holds that NewHold puts
// in the place of parts, which are the holds of the locks that it is made of, if there are any.
func (internals) NewHold(ctx context.Context, of Acquisition, parts []*Hold,
) (h, kept *Hold, end func(reason error)) {
	h, end = NewHold(ctx, of)
	for i, p := range parts {
		p.level.whole.Store(h.level)
		if _, ours := p.level.acquisition.(*acquisition); ours { // another may know it by its address
			parts[i] = p.level.without()
		}
	}
	return h, h.level.without(), end
}

// without returns a hold of the level without a caller.
func (l *level) without() *Hold {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hold, l.reachable = nil, nil
	return &Hold{level: l, parent: context.Background()}
}

// Same reports whether two holds are of one level.
func (internals) Same(a, b *Hold) bool { return a.level == b.level }

// IsClosing reports whether a hold's client is being closed, which may be why the hold has ended;
// false for holds of other packages.
func (internals) IsClosing(h *Hold) bool {
	a, ours := h.level.acquisition.(*acquisition)
	return ours && a.client.isClosing()
}

// TryBatch tries once to acquire several locks of one batch, for the owner in ctx: all or none.
func (internals) TryBatch(ctx context.Context, lease Lease, locks []*Lock) ([]*Hold, error) {
	return tryBatch(ctx, lease, locks)
}

// ReleaseBatch unlocks holds of several locks of one batch. It returns one error for each.
func (internals) ReleaseBatch(holds []*Hold) []error { return releaseBatch(holds) }

// Identity returns what tells a lock from others.
func (internals) Identity(l *Lock) compose.Identity {
	return compose.Identity{
		Batch:  compose.Batch{Client: l.client.id, Slot: l.client.transport.Slot(l.name)},
		Server: l.Server(), Name: l.name, Kind: l.family, Mode: int(l.mode), Queue: l.queueKey,
		Kept:    l.atLeast > 0,
		Batched: l.batched && l.invalid == nil && l.client.options.SyncReplicas == 0,
	}
}

// Trace begins the trace of a call that wants a lock made of others, with the tracer of the client
// of one of them, which may be nil. The methods of the trace do nothing without a tracer.
func (internals) Trace(ctx context.Context, of *Lock, kind, name, server string,
	wait time.Duration, lease Lease,
) *call {
	if of == nil || of.client.tracing == nil {
		return nil
	}
	return of.client.tracing.begin(ctx, of.client, TracedLock{name, kind, server},
		AcquireStart{Since: time.Now(), Wait: wait, Lease: lease})
}

// Node returns a plain lock as part of a lock over several servers; an error for other kinds.
func (internals) Node(l *Lock) (compose.Node, error) { return l.node() }

// IsShared reports whether several owners can hold a lock at once. It is for package leader.
func (internals) IsShared(l *Lock) bool { return l.mode == sharedMode }

// The following are for once.

// Flights returns the keys of package once that callers of a client ask for at the moment.
func (internals) Flights(c *Client) *flight.Group { return &c.flights }

// Once sends a command beside a lock, for at most Options.CommandTimeout. final says that the
// command uses the capacity of held locks, and also works while the client closes.
func (internals) Once(ctx context.Context, l *Lock, final bool,
	command func(context.Context, rueidis.CoreClient) (lua.OnceRecord, error),
) (lua.OnceRecord, error) {
	b, kind := l.exchangeBudget(ctx), transport.Acquire
	if final {
		b, kind = wait.NewBudget(ctx, nil, l.client.options.CommandTimeout), transport.Keep
	}
	return exchange(b, l, kind, func(ctx context.Context) (lua.OnceRecord, error) {
		return command(ctx, l.client.redis)
	})
}

// Permanent reports whether no retry of a command helps after err.
func (internals) Permanent(l *Lock, err error) bool { return l.client.transport.Permanent(err) }

// The following are for rlocktest.

// Observe calls f with each hold of a lock of this package that a caller acquires through the
// client, on the caller's goroutine, before the caller has it. f must not block.
func (internals) Observe(c *Client, f func(*Hold)) { c.observer.Store(&f) }

// Inside reports whether h was acquired with a context that comes from that of outer, or of a lock
// that outer is a part of.
func (internals) Inside(h, outer *Hold) bool { return h.inside(outer.level) }

// Share reports whether two holds of one lock never exclude each other, because both only read.
func (internals) Share(a, b *Hold) bool { return a.level.isShared() && b.level.isShared() }

// Releasing reports whether the release of a hold has begun.
func (internals) Releasing(h *Hold) bool { return h.level.unlocked.Load() }

// Held returns what the client holds at this moment.
func (internals) Held(c *Client) (all []compose.HeldLock) {
	for _, a := range c.acquisitions() {
		all = append(all, compose.HeldLock{Name: a.lock.name, Owner: a.owner,
			Kind: a.lock.kindName(), AcquiredAt: a.site().String()})
	}
	return all
}

// Waiters returns how many callers wait for a lock through the client.
func (internals) Waiters(c *Client) int {
	n, _ := c.queues.Waiters(func(queueName) bool { return true })
	return n
}

// observe calls the observer of the client, if there is one, with a hold that was acquired.
func (c *Client) observe(h *Hold) {
	if f := c.observer.Load(); f != nil && h != nil {
		(*f)(h)
	}
}

// inside reports whether h was acquired with a context that comes from that of a hold of outer, or
// of a lock that outer is a part of.
func (h *Hold) inside(outer *level) bool {
	for c := h.ownerContext; c != nil; c = c.Outer {
		ownerContext, _ := c.Hold.(*Hold)
		if ownerContext == nil {
			continue
		}
		for l := outer; l != nil; l = l.whole.Load() {
			if l == ownerContext.level {
				return true
			}
		}
	}
	return false
}

func (l *level) isShared() bool {
	a, ours := l.acquisition.(*acquisition)
	return ours && a.lock.mode == sharedMode
}
