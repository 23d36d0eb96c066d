package rlock

import "holdfast/internal/hooks"

// The parts of this package that multilock and redlock use.
func init() {
	hooks.Set(hooks.Hooks[*Lock, *Hold]{
		OnEnd:        (*Hold).onEnd,
		IsClosing:    (*Hold).isClosing,
		TryBatch:     tryBatch,
		ReleaseBatch: releaseBatch,
		Identity:     (*Lock).identity,
		Node:         (*Lock).node,
	})
}

// isClosing reports whether the client is being closed, which may be why the hold has ended.
func (h *Hold) isClosing() bool {
	a, ours := h.acquisition.(*acquisition)
	return ours && a.client.isClosing()
}

// identity returns the identity of the lock.
func (l *Lock) identity() hooks.Identity {
	return hooks.Identity{
		Batch:  hooks.Batch{Client: l.client.id, Slot: l.client.transport.Slot(l.name)},
		Server: l.Server(), Name: l.name, Kind: l.family, Mode: int(l.mode),
		Batched: l.together && l.invalid == nil && l.client.options.SyncReplicas == 0,
	}
}
