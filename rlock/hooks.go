package rlock

import "holdfast/internal/hooks"

// The parts of this package that multilock and redlock use.
func init() {
	hooks.Set(hooks.Hooks[*Lock, *Hold]{
		OnEnd: func(h *Hold, f func(error)) { h.level.onEnd(f) },
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
		Node: (*Lock).node,
	})
}
