// Package locking acquires locks for its callers.
package locking

import (
	"context"

	"holdfast/rlock"
)

var client *rlock.Client

// Locking does the same as an interface.
type Locking interface {
	AcquireLock(ctx context.Context, name string) (*rlock.Hold, error)
	Held(name string) (*rlock.Hold, error)
}

func Acquire(ctx context.Context, name string) (*rlock.Hold, error) {
	return client.NewLock(name).Lock(ctx, rlock.Watchdog)
}

func FromContext(ctx context.Context) (*rlock.Hold, error) {
	hold, _ := ctx.Value(client).(*rlock.Hold)
	return hold, nil
}

func Put(hold *rlock.Hold) { hold.Leave() }
