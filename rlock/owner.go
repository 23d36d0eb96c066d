package rlock

import (
	"context"
	"strconv"

	"holdfast/internal/owner"
)

// WithOwner returns a context with a new owner. A caller that acquires a lock with it, or with a
// context derived from it, may acquire that lock again while holding it. A hold's own context
// carries its owner already; WithOwner is needed only where the context of the hold does not reach,
// as in code ported from Java.
//
// Goroutines that share an owner do not exclude each other. Give each its own, or none: then each
// acquisition gets a new one, nested calls do not re-enter, and exclusion always holds.
func WithOwner(ctx context.Context) context.Context { return owner.With(ctx, owner.New()) }

// newOwner returns a new name for an acquisition in Redis, even for the same owner. A release that
// was given up may still be delivered later, by a connection thought dead. It must then find
// nothing, or it would free the lock under a later holder.
func (c *Client) newOwner() string {
	name := append(append(make([]byte, 0, 64), c.id...), ':')
	return string(strconv.AppendUint(name, uint64(owner.New()), 10))
}
