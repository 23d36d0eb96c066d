// Package redlock stands in for the real one.
package redlock

import (
	"context"
	"time"

	"holdfast/rlock"
)

type Lock struct{ _ int }

func (l *Lock) Lock(ctx context.Context, lease time.Duration) (*rlock.Hold, error) {
	return nil, nil
}
func (l *Lock) TryLock(ctx context.Context, wait, lease time.Duration) (*rlock.Hold, error) {
	return nil, nil
}
func (l *Lock) Unlock(ctx context.Context) error { return nil }

type Options struct{ MaxLease time.Duration }

func New(name string, options Options, locks ...*rlock.Client) *Lock     { return nil }
func NewOn(name string, options Options, clients ...*rlock.Client) *Lock { return nil }
