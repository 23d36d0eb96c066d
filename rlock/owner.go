package rlock

import (
	"context"
	"strconv"

	"holdfast/internal/owner"
)

// WithOwner returns a context with a new owner: who takes a lock with it, or with a context derived
// from it, may take that lock again while holding it. A hold's own context carries its owner
// already, so this is needed only where the context of the hold does not reach, as in code ported
// from Java.
//
// Goroutines that share an owner do not exclude each other. Give each its own, or none: a context
// without an owner gets a fresh one for each acquisition, which costs re-entry, never exclusion.
func WithOwner(ctx context.Context) context.Context {
	return owner.With(ctx, owner.New())
}

// newOwner is how Redis knows an acquisition of this client. It is a new one each time, also for
// the same owner: a command that was given up may still be executed, when a connection thought dead
// delivers what was sent on it, and must then find nothing of its owner's. A release would free the
// lock under a later holder.
func (c *Client) newOwner() string {
	return c.id + ":" + strconv.FormatUint(uint64(owner.New()), 10)
}
