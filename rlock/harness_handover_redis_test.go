//go:build redis

package rlock_test

import (
	"context"
	"testing"
	"time"

	"holdfast/rlock"
)

// exit is a way for a waiter to leave without the lock.
type exit struct {
	name  string
	begin func(lock *rlock.Lock, lease time.Duration) (waiter <-chan outcome, leave func())
	err   error
}

// exits returns all of them. Their leave must be called before the test ends.
func exits(t testing.TB, c *rlock.Client) []exit {
	return []exit{
		{"is cancelled", func(lock *rlock.Lock, lease time.Duration) (<-chan outcome, func()) {
			ctx, cancel := context.WithCancel(t.Context())
			return lockInBackground(ctx, lock, lease), cancel
		}, context.Canceled},
		{
			"has waited long enough",
			func(lock *rlock.Lock, lease time.Duration) (<-chan outcome, func()) {
				return inBackground(
					func() (*rlock.Hold, error) { return lock.TryLock(t.Context(), 2*time.Second, lease) },
				), func() {}
			},
			rlock.ErrNotAcquired,
		},
		{"closes its client", func(lock *rlock.Lock, lease time.Duration) (<-chan outcome, func()) {
			return lockInBackground(t.Context(), lock,
				lease), func() { go func() { _ = c.Close(context.Background()) }() }
		}, rlock.ErrClosed},
	}
}
