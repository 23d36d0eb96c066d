package rlock

import (
	"context"
	"strconv"
	"sync/atomic"
)

// ownerKey is the context key of an owner's token.
type ownerKey struct{}

// tokens numbers the owners of this process.
var tokens atomic.Uint64

// WithOwner returns a context with a new owner: who takes a lock with it, or with a context derived from it, may take
// that lock again while holding it. A hold's own context carries its owner already, so this is needed only where
// the context of the hold does not reach, as in code ported from Java.
//
// Goroutines that share an owner do not exclude each other. Give each its own, or none: a context without an owner
// gets a fresh one for each acquisition, which costs re-entry, never exclusion.
func WithOwner(ctx context.Context) context.Context {
	return withToken(ctx, newToken())
}

func newToken() uint64 { return tokens.Add(1) }

func withToken(ctx context.Context, token uint64) context.Context {
	return context.WithValue(ctx, ownerKey{}, token)
}

// tokenFrom returns the owner's token of ctx; named is false if it has none.
func tokenFrom(ctx context.Context) (token uint64, named bool) {
	token, named = ctx.Value(ownerKey{}).(uint64)
	return token, named
}

// newOwner is how Redis knows an acquisition of this client. It is a new one each time, also for the same token: a command
// that was given up may still be executed, when a connection thought dead delivers what was sent on it, and must then
// find nothing of its owner's. A release would free the lock under a later holder.
func (c *Client) newOwner() string {
	return c.id + ":" + strconv.FormatUint(newToken(), 10)
}
