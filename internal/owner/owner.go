// Package owner carries the owner of locks in a context, for the packages whose locks nest.
package owner

import (
	"context"
	"sync/atomic"
)

// Token is an owner, unique within this process.
type Token uint64

var tokens atomic.Uint64

// New returns a new owner.
func New() Token { return Token(tokens.Add(1)) }

type key struct{}

// With returns a context that carries an owner.
func With(ctx context.Context, t Token) context.Context { return context.WithValue(ctx, key{}, t) }

// From returns the owner in ctx; named is false if it has none.
func From(ctx context.Context) (t Token, named bool) {
	t, named = ctx.Value(key{}).(Token)
	return t, named
}
