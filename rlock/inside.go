package rlock

import (
	"context"
	"time"

	"holdfast/internal/seam"
	"holdfast/lua"
)

// What the packages that make one lock of several may see.
func init() {
	seam.Open(seam.Inside[*Lock, *Hold]{
		OnEnd:           (*Hold).onEnd,
		Closes:          (*Hold).closes,
		Apart:           (*Lock).company,
		TryTogether:     tryTogether,
		ReleaseTogether: releaseTogether,
		Place:           (*Lock).whereabouts,
		Node:            (*Lock).node,
	})
}

// closes reports whether the client is being closed, which may be why the hold has ended.
func (h *Hold) closes() bool {
	g, ours := h.tenure.(*holding)
	return ours && g.client.closes()
}

// company is which locks can be taken with this one in one step.
func (l *Lock) company() seam.Company {
	if _, plain := l.kind.(reentrant); !plain || l.invalid != nil || l.client.options.SyncReplicas > 0 {
		return seam.Company{}
	}
	return seam.Company{Client: l.client.id, Slot: l.slot()}
}

// whereabouts says where the lock is.
func (l *Lock) whereabouts() seam.Place {
	return seam.Place{Server: l.Server(), Slot: l.slot(), Name: l.name, Shared: l.side == shared, Kind: l.standing, Client: l.client.id}
}

func (l *Lock) slot() uint16 {
	if l.client.wire.cluster == nil {
		return 0
	}
	return lua.Slot(l.name)
}

func tryTogether(ctx context.Context, lease time.Duration, locks []*Lock) ([]*Hold, error) {
	return (&together{locks: locks}).try(ctx, lease)
}
