package rlock

import (
	"context"
	"strconv"
	"strings"

	"holdfast/internal/owner"
)

// WithOwner returns a context with a new owner, which replaces one that is there: a lock that the
// replaced owner holds is then held by another. A caller that acquires a lock with the context, or
// with one derived from it, may acquire that lock again while holding it. A hold's own context
// carries its owner already; WithOwner is needed only where the context of the hold does not reach,
// as in code ported from Java.
//
// Goroutines that share an owner do not exclude each other: both get in. Give each request and each
// goroutine its own owner, or none: then each acquisition gets a new one, nested calls do not
// re-enter, and exclusion always holds. See [Detached].
func WithOwner(ctx context.Context) context.Context { return owner.WithRoot(ctx, owner.New()) }

// EnsureOwner returns ctx if it carries an owner, and else one with a new owner. It is for code
// that may run inside a section of its caller, such as a middleware. Unlike with [WithOwner], the
// search for cycles (see [ErrDeadlock]) ignores locks that were acquired with the context itself,
// because the context of a request often goes to several goroutines.
func EnsureOwner(ctx context.Context) context.Context {
	if HasOwner(ctx) {
		return ctx
	}
	return owner.With(ctx, owner.New())
}

// HasOwner reports whether ctx carries an owner: that of a hold's context or of [WithOwner].
func HasOwner(ctx context.Context) bool {
	token, _ := owner.From(ctx)
	return token != 0
}

// Detached returns ctx without its owner, with its values, deadline and cancellation. Pass it to a
// goroutine that is started while a lock is held, and that acquires locks itself. All locks that
// others hold then exclude the goroutine, even the locks of the caller. A goroutine that outlives
// the caller's context needs context.WithoutCancel as well.
func Detached(ctx context.Context) context.Context { return owner.With(ctx, 0) }

const (
	longestName = 64   // of an acquisition in Redis
	nameMemory  = 2048 // that names share, to save memory allocations
)

// newOwner returns a new name for an acquisition in Redis, even for the same owner. A release that
// was given up may still be delivered later, by a connection thought dead. It must then find
// nothing, or it would free the lock under a later holder.
//
// The number is drawn here, and not in advance, because a copy of this process, in a virtual
// machine that is cloned, has the same memory.
func (l *Lock) newOwner() string {
	c := l.client
	text, _ := c.names.Get().(*strings.Builder)
	if text == nil || text.Cap()-text.Len() < longestName {
		text = new(strings.Builder)
		text.Grow(nameMemory)
	}
	var digits [20]byte
	begin := text.Len()
	text.WriteString(c.id)
	text.WriteByte(':')
	text.Write(strconv.AppendUint(digits[:0], owner.Number(l.wakes(), c.acquired.Add(1)), 10))
	name := text.String()[begin:]
	c.names.Put(text)
	return name
}

// key returns the key of an owner's session with the lock.
func (l *Lock) key(t owner.Token) sessionKey { return sessionKey{l.family, l.name, t} }

// wakes returns whose waiters a release of the lock wakes.
func (l *Lock) wakes() owner.Kind {
	switch {
	case l.sharesKey:
		return owner.ReadWrite
	case l.queueKey != "":
		return owner.Fair
	}
	return owner.Plain
}
