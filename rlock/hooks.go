package rlock

import (
	"context"
	"time"

	"holdfast/internal/hooks"
)

// The parts of this package that multilock and redlock use.
func init() {
	hooks.Set(hooks.Hooks[*Lock, *Hold]{
		OnEnd:        (*Hold).onEnd,
		Closes:       (*Hold).closes,
		Batch:        (*Lock).batch,
		TryBatch:     tryBatch,
		ReleaseBatch: releaseBatch,
		Identity:     (*Lock).identity,
		Node:         (*Lock).node,
	})
}

// closes reports whether the client is being closed, which may be why the hold has ended.
func (h *Hold) closes() bool {
	a, ours := h.acquisition.(*acquisition)
	return ours && a.client.closes()
}

// batch returns the batch of the lock; the zero value if it cannot be acquired together with
// others.
func (l *Lock) batch() hooks.Batch {
	if !l.together || l.invalid != nil || l.client.options.SyncReplicas > 0 {
		return hooks.Batch{}
	}
	return hooks.Batch{Client: l.client.id, Slot: l.client.transport.Slot(l.name)}
}

// identity returns the identity of the lock.
func (l *Lock) identity() hooks.Identity {
	return hooks.Identity{Server: l.Server(), Slot: l.client.transport.Slot(l.name), Name: l.name,
		Shared: l.mode == sharedMode, Kind: l.family, Client: l.client.id}
}

func tryBatch(ctx context.Context, lease time.Duration, locks []*Lock) ([]*Hold, error) {
	return (&batch{locks: locks}).try(ctx, lease)
}
