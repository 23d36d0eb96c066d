// Package owner carries the owner of locks in a context, for the packages whose locks nest, and
// numbers the acquisitions of owners in Redis.
package owner

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// Token is an owner, unique within this process; 0 is none.
type Token uint64

var tokens atomic.Uint64

// New returns a new owner.
func New() Token { return Token(tokens.Add(1)) }

// Context is what a context carries: the owner, and how it came to the caller. It does not change
// once a context carries it.
type Context struct {
	Token Token
	// Root has what was acquired with this owner context directly, all of which a caller with it
	// holds. Root tells owner contexts apart without keeping them alive. Root is nil if several
	// goroutines may acquire locks with the owner context, as with the context of a hold.
	Root *Root
	// Outer is the owner context in the context that this one was derived from; nil if there is none.
	Outer *Context
	// Hold is the hold whose context carries it; nil if that is not of a hold.
	Hold Hold
}

// Hold is a hold of package rlock.
type Hold interface{ Err() error }

// Root has what was acquired with an owner context directly. It is safe for concurrent use.
type Root struct {
	mu   sync.Mutex
	held []Held  // guarded by mu
	few  [2]Held // the memory of held, if that is enough
}

// Held is what a [Root] has. It keeps its place there, so that it can be removed without a search.
type Held interface{ Place() *int32 }

// Add adds what was acquired. It is added to one Root, once.
func (r *Root) Add(h Held) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held == nil {
		r.held = r.few[:0]
	}
	*h.Place() = int32(len(r.held))
	r.held = append(r.held, h)
}

// Remove removes what Add has added.
func (r *Root) Remove(h Held) {
	r.mu.Lock()
	defer r.mu.Unlock()
	place, last := *h.Place(), len(r.held)-1
	moved := r.held[last]
	r.held[place], *moved.Place() = moved, place
	r.held[last] = nil
	r.held = r.held[:last]
}

// Held returns what was added and not removed.
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

// From returns the owner in ctx, 0 if it has none, and the owner context, nil if there is none.
func From(ctx context.Context) (t Token, c *Context) {
	c, _ = ctx.Value(key{}).(*Context)
	if c != nil {
		t = c.Token
	}
	return t, c
}

// With returns a context in which t replaces the owner. With 0 it has no owner.
func With(ctx context.Context, t Token) context.Context {
	c := &Context{Token: t}
	if t != 0 {
		_, c.Outer = From(ctx)
	}
	return Carry(ctx, c)
}

// WithRoot is like [With], for a context that one goroutine at a time uses.
func WithRoot(ctx context.Context, t Token) context.Context {
	_, outer := From(ctx)
	return Carry(ctx, &Context{Token: t, Root: new(Root), Outer: outer})
}

// Within returns a context with the owner of ctx, and with an owner context that counts what is
// acquired with it directly. If that of ctx does so already, Within returns ctx. ctx must have an
// owner.
func Within(ctx context.Context) context.Context {
	t, c := From(ctx)
	if c.Root != nil {
		return ctx
	}
	return Carry(ctx, &Context{Token: t, Root: new(Root), Outer: c})
}

// Kind says how the waiters of a lock are woken. Locks of one name, but of different kinds, exclude
// each other, but do not wake each other's waiters.
type Kind uint8

// The kinds that a number can say.
const (
	Unknown   Kind = iota
	Plain          // reentrant, non-reentrant and fenced locks
	Fair           // in the order of a queue in Redis
	ReadWrite      // both sides of a read-write lock
)

// String returns the kind as an adjective.
func (k Kind) String() string {
	return [...]string{"unknown", "plain", "fair", "read-write"}[k]
}

// The bits of a number, from the highest: 0, so that it is a positive int64; 1, which tells it from
// the thread ids of Redisson; the kind; a random part; and a part that counts.
const (
	marked     = 1 << 62
	kindShift  = 60
	countBits  = 28
	kindMask   = 3
	countsMask = 1<<countBits - 1
)

// Number returns the number of an acquisition in Redis. It differs from those with another count,
// until that has grown by 2^28, and by its random part from one with the same count that another
// copy of this process has drawn: a virtual machine may be cloned with its memory.
func Number(k Kind, count uint64) uint64 {
	var random [4]byte
	_, _ = rand.Read(random[:]) // it never fails
	return marked | uint64(k)<<kindShift | uint64(binary.BigEndian.Uint32(random[:]))<<countBits |
		count&countsMask
}

// KindOf returns the kind in a name "<client id>:<number>"; Unknown if the number is not one of
// [Number].
func KindOf(name string) Kind {
	_, number, _ := strings.Cut(name, ":")
	number, _, _ = strings.Cut(number, ":") // a writer has a suffix
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < marked {
		return Unknown
	}
	return Kind(n >> kindShift & kindMask)
}
