package rlock

import (
	"context"

	"holdfast/internal/hooks"
)

// The parts of this package that multilock and redlock use.
func init() {
	hooks.Set(hooks.Hooks[*Lock, *Hold]{
		OnEnd: func(h *Hold, f func(error)) { h.level.onEnd(f) },
		NewHold: func(ctx context.Context, of any, first *Lock) (h, kept *Hold, end func(error)) {
			return newWhole(ctx, of.(Acquisition), first)
		},
		TakeOver: (*Hold).taken,
		ReportDropped: func(of *Lock, holds []*Hold) {
			levels := make([]*level, len(holds))
			for i, h := range holds {
				levels[i] = h.level
			}
			reportDropped(of.client, levels)
		},
		// The closing of its client may be why a hold has ended.
		IsClosing: func(h *Hold) bool {
			a, ours := h.level.acquisition.(*acquisition)
			return ours && a.client.isClosing()
		},
		TryBatch:     tryBatch,
		ReleaseBatch: releaseBatch,
		Identity: func(l *Lock) hooks.Identity {
			return hooks.Identity{
				Batch:  hooks.Batch{Client: l.client.id, Slot: l.client.transport.Slot(l.name)},
				Server: l.Server(), Name: l.name, Kind: l.family, Mode: int(l.mode), Queue: l.queueKey,
				Batched: l.batched && l.invalid == nil && l.client.options.SyncReplicas == 0,
			}
		},
		Trace: traceWhole,
		Node:  (*Lock).node,
	})
	hooks.SetTest(hooks.TestHooks[*Client, *Hold]{
		Observe:   func(c *Client, f func(*Hold)) { c.observer.Store(&f) },
		Inside:    func(h, outer *Hold) bool { return h.inside(outer.level) },
		Share:     func(a, b *Hold) bool { return a.level.isShared() && b.level.isShared() },
		Releasing: func(h *Hold) bool { return h.level.unlocked.Load() },
		Held:      (*Client).heldLocks,
		Waiters: func(c *Client) int {
			n, _ := c.queues.Waiters(func(queueName) bool { return true })
			return n
		},
	})
}

// observe calls the observer of the client, if there is one, with a hold that was acquired.
func (c *Client) observe(h *Hold) {
	if f := c.observer.Load(); f != nil && h != nil {
		(*f)(h)
	}
}

// heldLocks describes what the client holds.
func (c *Client) heldLocks() (all []hooks.HeldLock) {
	for _, a := range c.acquisitions() {
		all = append(all, hooks.HeldLock{Name: a.lock.name, Owner: a.owner,
			Kind: a.lock.kindName(), AcquiredAt: a.site().String()})
	}
	return all
}

// inside reports whether h was acquired with a context that comes from that of a hold of outer, or
// of a lock that outer is a part of.
func (h *Hold) inside(outer *level) bool {
	for c := h.carrier; c != nil; c = c.Outer {
		carrier, _ := c.Hold.(*Hold)
		if carrier == nil {
			continue
		}
		for l := outer; l != nil; l = l.whole.Load() {
			if l == carrier.level {
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
