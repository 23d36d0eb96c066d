package rlock

import (
	"context"
	"strconv"

	"holdfast/internal/owner"
)

// WithOwner returns a context with a new owner. A caller that acquires a lock with it, or with a
// context derived from it, may acquire that lock again while holding it. A hold's own context
// carries its owner already; WithOwner is for where that does not reach, as in code ported from
// Java.
//
// Goroutines that share an owner do not exclude each other. Give each its own, or none: then each
// acquisition gets a new one, nested calls do not re-enter, and exclusion always holds.
func WithOwner(ctx context.Context) context.Context { return owner.With(ctx, owner.New()) }

// newOwner returns a new name for an acquisition in Redis, even for the same owner: a release that
// was given up, and is delivered late by a connection thought dead, must find nothing to free.
func (c *Client) newOwner() string {
	return c.id + ":" + strconv.FormatUint(uint64(owner.New()), 10)
}
