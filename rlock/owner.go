package rlock

import (
	"context"
	"strconv"
	"strings"

	"holdfast/internal/owner"
)

// WithOwner returns a context with a new owner, which replaces the owner of ctx. Calls with the new
// context, or with a context derived from it, can acquire a lock again while they hold it. For
// these calls, the locks of the old owner belong to somebody else. The context of a hold carries an
// owner already, so you need WithOwner only where the context of the hold does not reach, as in
// code ported from Java.
//
// Goroutines with the same owner do not exclude each other. Give each request and each goroutine
// its own owner, or none. Without an owner in the context, each acquisition gets a new one. Nested
// calls then do not re-enter, and exclusion always holds. See [Detached].
func WithOwner(ctx context.Context) context.Context { return owner.WithRoot(ctx, owner.New()) }

// EnsureOwner returns ctx if ctx carries an owner, and otherwise a context with a new owner.
// EnsureOwner is for code that may run under a lock of its caller, such as middleware.
//
// Unlike with [WithOwner], the search for cycles (see [ErrDeadlock]) ignores locks that were
// acquired with the context itself, because the context of a request often goes to several
// goroutines.
func EnsureOwner(ctx context.Context) context.Context {
	if HasOwner(ctx) {
		return ctx
	}
	return owner.With(ctx, owner.New())
}

// HasOwner reports whether ctx carries an owner, from the context of a hold or from [WithOwner].
func HasOwner(ctx context.Context) bool {
	token, _ := owner.From(ctx)
	return token != 0
}

// Detached returns ctx without its owner, but with its values, deadline and cancellation. Pass the
// result to a goroutine that you start while you hold a lock, if the goroutine acquires locks. All
// locks of others then exclude the goroutine, even the locks of the caller. For a goroutine that
// outlives the context of the caller, also call context.WithoutCancel.
func Detached(ctx context.Context) context.Context { return owner.With(ctx, 0) }

const (
	longestName = 64   // of an acquisition in Redis
	nameMemory  = 2048 // for shared names, to save allocations
)

// newName returns a new name for an acquisition in Redis, with the kind in its number. The name is
// new even for the same owner. A connection that was given up may still deliver a release later.
// The late release must then find nothing. Otherwise it would free the lock of a later holder.
//
// The client draws the number here and not in advance, because a copy of this process, in a cloned
// virtual machine, has the same memory.
func (c *Client) newName(k owner.Kind) string {
	text, _ := c.names.Get().(*strings.Builder)
	if text == nil || text.Cap()-text.Len() < longestName {
		text = new(strings.Builder)
		text.Grow(nameMemory)
	}
	var digits [20]byte
	begin := text.Len()
	text.WriteString(c.id)
	text.WriteByte(':')
	text.Write(strconv.AppendUint(digits[:0], owner.Number(k, c.acquired.Add(1)), 10))
	name := text.String()[begin:]
	c.names.Put(text)
	return name
}
