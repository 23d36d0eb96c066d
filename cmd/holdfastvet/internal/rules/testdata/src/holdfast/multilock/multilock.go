// Package multilock stands in for holdfast's. Made by stub_test.go.
package multilock

import "context"
import "holdfast/rlock"
import "time"

type Lock struct {
	_ int
}

func (*Lock) Lock(ctx context.Context, lease rlock.Lease) (*rlock.Hold, error) {
	return *new(*rlock.Hold), *new(error)
}

func (*Lock) Name() string {
	return *new(string)
}

func (*Lock) TryLock(ctx context.Context, wait time.Duration, lease rlock.Lease) (*rlock.Hold, error) {
	return *new(*rlock.Hold), *new(error)
}

func (*Lock) Unlock(ctx context.Context) error {
	return *new(error)
}

func New(locks ...rlock.Locker) *Lock {
	return *new(*Lock)
}

func NewOn(client *rlock.Client, names ...string) *Lock {
	return *new(*Lock)
}
