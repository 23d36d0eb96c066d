package rlock_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/internal/logtest"
	"holdfast/rlock"
)

const wasDropped = "a hold was dropped without Unlock"

// renewals lets that many renewals pass, each after a garbage collection, or fewer if done.
func renewals(n int, done func() bool) {
	for ; n > 0 && !done(); n-- {
		runtime.GC()
		time.Sleep(10 * time.Second) // of the bubble
	}
}

// The mistake: a hold that goes nowhere, such as Java's isHeldByCurrentThread ported word by word.
func TestDroppedHoldIsLoggedAndNotRenewed(t *testing.T) {
	for name, drop := range map[string]func(context.Context, *testing.T, *rlock.Lock){
		"hold": func(ctx context.Context, t *testing.T, lock *rlock.Lock) {
			locktest.AcquireUnkept(ctx, t, lock)
		},
		"hold and context": func(ctx context.Context, t *testing.T, lock *rlock.Lock) {
			locktest.AcquireUnkept(ctx, t, lock).Context()
		},
		"hold, context and owner": func(ctx context.Context, t *testing.T, lock *rlock.Lock) {
			locktest.AcquireUnkept(rlock.WithOwner(ctx), t, lock).Context()
		},
		"two levels": func(ctx context.Context, t *testing.T, lock *rlock.Lock) {
			outer := locktest.AcquireUnkept(ctx, t, lock)
			locktest.AcquireUnkept(outer.Context(), t, lock)
		},
	} {
		t.Run(name, func(t *testing.T) {
			var log logtest.Lines
			options := rlock.Options{Debug: true, Logger: log.Logger(), Tracer: new(locktest.Tracer)}
			inBubbleOnEveryKind(t, options, func(t *testing.T, b *bubble, k kind) {
				before := len(log.With("lost"))
				ctx, end := context.WithCancel(t.Context()) // lasts longer than the hold
				defer end()
				locktest.Dropping(func() { drop(ctx, t, b.lock) })
				renewals(10_000, func() bool { return len(log.With("lost")) > before })
				lines := log.With(wasDropped)
				require.NotEmpty(t, lines)
				require.Contains(t, lines[len(lines)-1], "lock=lock")
				require.Regexp(t, `acquired at .*\.go:\d+`, lines[len(lines)-1])
				require.Zero(t, rlock.Sessions(b.client))
			})
		})
	}
}

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

func TestDroppedLevelDoesNotEndTheRenewalOfOthers(t *testing.T) {
	var log logtest.Lines
	inBubble(t, rlock.Options{Logger: log.Logger()}, func(t *testing.T, b *bubble) {
		var outer *rlock.Hold
		locktest.Dropping(func() {
			outer = locktest.AcquireUnkept(t.Context(), t, b.lock)
			locktest.AcquireUnkept(outer.Context(), t, b.lock)
		})
		renewals(10, func() bool { return false })
		require.Empty(t, log.With(wasDropped), "its owner can be reached")
		require.NoError(t, outer.Unlock(t.Context()))
		outer = nil
		renewals(10_000, func() bool { return len(log.With("lost")) > 0 })
		require.Len(t, log.With(wasDropped), 1)
	})
}

// lookups counts how often a context is asked for values. It is not safe for concurrent use.
type lookups struct {
	context.Context
	n int
}

func (l *lookups) Value(key any) any {
	l.n++
	return l.Context.Value(key)
}

func TestWatchdogDoesNotUseTheCallersContext(t *testing.T) {
	inBubbleOnEveryKind(t, rlock.Options{}, func(t *testing.T, b *bubble, _ kind) {
		ctx := &lookups{Context: t.Context()}
		hold, err := b.lock.Lock(ctx, rlock.Watchdog)
		require.NoError(t, err)
		before := ctx.n
		time.Sleep(25 * time.Second)
		require.Equal(t, before, ctx.n)
		unlock(t, hold)
	})
}
