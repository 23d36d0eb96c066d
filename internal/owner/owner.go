// Package owner carries the owner of locks in a context, for all packages with nested locks. The
// package also numbers the acquisitions of owners in Redis.
package owner

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// Token is an owner, unique within this process. 0 means no owner.
type Token uint64

var tokens atomic.Uint64

// New returns a new owner.
func New() Token { return Token(tokens.Add(1)) }

// Context is the owner context, which a [context.Context] carries. It has the owner, and how the
// owner came to the caller. It does not change once a context carries it.
type Context struct {
	Token Token
	// Root has what was acquired directly with this owner context. A caller with the owner context
	// holds all of that. Root distinguishes owner contexts without keeping them alive. Root is nil if
	// several goroutines may acquire locks with the owner context, as with the context of a hold.
	Root *Root
	// Outer is the owner context of the parent context, or nil if the parent has no owner context.
	Outer *Context
	// Hold is the hold whose context carries the owner context, or nil for a context that is not of a
	// hold.
	Hold Hold
	// Inside reports that the parent context comes from the context of a hold, even without an owner.
	Inside bool
}

// UnderHold reports whether the context comes from the context of a hold. UnderHold of nil returns
// false.
func (c *Context) UnderHold() bool { return c != nil && (c.Inside || c.Hold != nil) }

// Hold is a hold of package rlock.
type Hold interface{ Err() error }

// Root has what was acquired directly with an owner context. Root is safe for concurrent use.
type Root struct {
	mu   sync.Mutex
	held []Held  // guarded by mu
	few  [2]Held // memory for a short held
}

// Held is an element of a [Root]. A Held keeps its place in the Root, so Remove needs no search.
type Held interface{ Place() *int32 }

// Add adds an element. Add each element to one Root only, and only once.
func (r *Root) Add(h Held) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held == nil {
		r.held = r.few[:0]
	}
	*h.Place() = int32(len(r.held))
	r.held = append(r.held, h)
}

// Remove removes an added element.
func (r *Root) Remove(h Held) {
	r.mu.Lock()
	defer r.mu.Unlock()
	place, last := *h.Place(), len(r.held)-1
	moved := r.held[last]
	r.held[place], *moved.Place() = moved, place
	r.held[last] = nil
	r.held = r.held[:last]
}

// Held returns the elements that were added and not removed.
func (r *Root) Held() []Held {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.held)
}

type key struct{}

// Carry returns a context with an owner context.
func Carry(ctx context.Context, c *Context) context.Context {
	return context.WithValue(ctx, key{}, c)
}

// From returns the owner in ctx, or 0 without an owner, and the owner context, or nil.
func From(ctx context.Context) (t Token, c *Context) {
	c, _ = ctx.Value(key{}).(*Context)
	if c != nil {
		t = c.Token
	}
	return t, c
}

// With returns a context in which t replaces the owner. With 0, the context has no owner.
func With(ctx context.Context, t Token) context.Context {
	_, outer := From(ctx)
	c := &Context{Token: t, Inside: outer.UnderHold()}
	if t != 0 {
		c.Outer = outer
	}
	return Carry(ctx, c)
}

// WithRoot is like [With], for a context that only one goroutine at a time uses.
func WithRoot(ctx context.Context, t Token) context.Context {
	_, outer := From(ctx)
	return Carry(ctx,
		&Context{Token: t, Root: new(Root), Outer: outer, Inside: outer.UnderHold()})
}

// Within returns a context with the owner of ctx and an owner context with a Root. If the owner
// context of ctx has a Root already, Within returns ctx. ctx must have an owner.
func Within(ctx context.Context) context.Context {
	t, c := From(ctx)
	if c.Root != nil {
		return ctx
	}
	return Carry(ctx, &Context{Token: t, Root: new(Root), Outer: c, Inside: c.UnderHold()})
}

// Kind says how a release wakes the waiters of a lock. Locks of different kinds with the same name
// exclude each other, but do not wake the waiters of each other.
type Kind uint8

// The kinds in the number of an acquisition.
const (
	Unknown   Kind = iota
	Plain          // reentrant, non-reentrant and fenced locks
	Fair           // in the order of a queue in Redis
	ReadWrite      // both sides of a read-write lock
	Kept           // a released lock that stays taken for a while, so no release will follow
)

// String returns the kind as an adjective.
func (k Kind) String() string {
	return [...]string{"unknown", "plain", "fair", "read-write", "kept"}[k]
}

// The bits of a number, from the highest:
//
//   - 0, because the number is a positive int64;
//   - 1, because the thread ids of Redisson are smaller;
//   - the kind, 0 for Kept;
//   - a random part;
//   - a counter.
const (
	marked     = 1 << 62
	kindShift  = 60
	countBits  = 28
	kindMask   = 3
	countsMask = 1<<countBits - 1
)

// Number returns the number of an acquisition in Redis. Numbers with different counts differ until
// the count has grown by 2^28. The random part distinguishes the numbers of two copies of this
// process with the same count, because a virtual machine may be cloned with its memory.
func Number(k Kind, count uint64) uint64 {
	var random [4]byte
	_, _ = rand.Read(random[:]) // cannot fail
	return marked | uint64(k&kindMask)<<kindShift |
		uint64(binary.BigEndian.Uint32(random[:]))<<countBits | count&countsMask
}

// KindOf returns the kind in a name "<client id>:<number>", or Unknown if the number is not from
// [Number].
func KindOf(name string) Kind {
	_, number, _ := strings.Cut(name, ":")
	number, _, _ = strings.Cut(number, ":") // the name of a writer has a suffix
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < marked {
		return Unknown
	}
	return cmp.Or(Kind(n>>kindShift&kindMask), Kept)
}
