package rlock

import "holdfast/internal/hooks"

// The parts of this package that multilock and redlock use.
func init() {
	hooks.Set(hooks.Hooks[*Lock, *Hold]{
		OnEnd:        (*Hold).onEnd,
		Closes:       (*Hold).closes,
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

// identity returns the identity of the lock.
func (l *Lock) identity() hooks.Identity {
	return hooks.Identity{
		Batch:  hooks.Batch{Client: l.client.id, Slot: l.client.transport.Slot(l.name)},
		Server: l.Server(), Name: l.name, Kind: l.family, Mode: int(l.mode),
		Batched: l.together && l.invalid == nil && l.client.options.SyncReplicas == 0,
	}
}
