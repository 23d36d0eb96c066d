//go:build redis

package rlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/internal/logtest"
	"holdfast/rlock"
)

func TestHoldIsNotDroppedWhileSomebodyCanReleaseIt(t *testing.T) {
	var log logtest.Lines
	inBubbleOnEveryKind(t, rlock.Options{Logger: log.Logger()}, func(t *testing.T, b *bubble, _ kind) {
		lock, owner := b.lock, rlock.WithOwner(t.Context())
		for name, acquire := range map[string]func() (release func() error){
			"hold": func() func() error {
				hold := locktest.AcquireUnkept(t.Context(), t, lock)
				return func() error { return hold.Unlock(t.Context()) }
			},
			"context of the hold": func() func() error {
				ctx := locktest.AcquireUnkept(t.Context(), t, lock).Context()
				return func() error { return lock.Unlock(ctx) }
			},
			"context derived from it": func() func() error {
				ctx := locktest.AcquireUnkept(t.Context(), t, lock).Context()
				ctx, cancel := context.WithTimeout(ctx, 1000*time.Hour)
				return func() error {
					defer cancel()
					return lock.Unlock(ctx)
				}
			},
			"channel that tells of its end": func() func() error {
				done := locktest.AcquireUnkept(t.Context(), t, lock).Done()
				return func() error {
					_, err := lock.ForceUnlock(t.Context())
					<-done
					return err
				}
			},
			"context of the owner": func() func() error {
				locktest.AcquireUnkept(owner, t, lock)
				return func() error { return lock.Unlock(owner) }
			},
			"context of the outer hold": func() func() error {
				outer := locktest.AcquireUnkept(t.Context(), t, lock)
				locktest.AcquireUnkept(outer.Context(), t, lock)
				unlock(t, outer)
				return func() error { return lock.Unlock(outer.Context()) }
			},
			"context of the outermost hold": func() func() error {
				outer := locktest.AcquireUnkept(t.Context(), t, lock)
				middle := locktest.AcquireUnkept(outer.Context(), t, lock)
				locktest.AcquireUnkept(middle.Context(), t, lock)
				renewals(1, func() bool { return false }) // all are watched
				unlock(t, middle)
				unlock(t, outer)
				return func() error { return lock.Unlock(outer.Context()) }
			},
		} {
			var release func() error
			locktest.Dropping(func() { release = acquire() })
			renewals(10, func() bool { return false })
			require.NoError(t, release(), name)
		}
	})
	require.Empty(t, log.With(wasDropped))
	require.Empty(t, log.With("lease ended"))
}
