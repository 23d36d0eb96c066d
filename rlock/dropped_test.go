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
func TestDroppedHoldIsReportedOnceAndGoesOnBeingRenewed(t *testing.T) {
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
			locktest.AcquireUnkept(outer.Context(), t, lock).Context()
		},
	} {
		t.Run(name, func(t *testing.T) {
			var log logtest.Lines
			options := rlock.Options{Debug: true, Logger: log.Logger(), Tracer: new(locktest.Tracer)}
			inBubbleOnEveryKind(t, options, func(t *testing.T, b *bubble, k kind) {
				before := len(log.With(wasDropped))
				ctx, end := context.WithCancel(t.Context()) // lasts longer than the hold
				defer end()
				locktest.Dropping(func() { drop(ctx, t, b.lock) })
				renewals(300, func() bool { return len(log.With(wasDropped)) > before })
				renewals(10, func() bool { return false })
				lines := log.With(wasDropped)[before:]
				require.Len(t, lines, 1)
				require.Contains(t, lines[0], "lock=lock")
				require.Regexp(t, `acquired at .*\.go:\d+`, lines[0])
				require.Empty(t, log.With(" lost"), "it is not renewed")
			})
		})
	}
}

// A leader that waits like this has let go of its hold, and works on.
func TestHoldWhoseContextIsWaitedForIsNotLost(t *testing.T) {
	var log logtest.Lines
	inBubbleOnEveryKind(t, rlock.Options{Logger: log.Logger()},
		func(t *testing.T, b *bubble, _ kind) {
			ctx, resign := context.WithCancel(rlock.WithOwner(t.Context()))
			defer resign()
			resigned := make(chan struct{})
			go func() {
				defer close(resigned)
				<-locktest.AcquireUnkept(ctx, t, b.lock).Context().Done()
			}()
			renewals(20, func() bool { return false })
			require.Empty(t, log.With(" lost"))
			select {
			case <-resigned:
				require.Fail(t, "its context has ended")
			default:
			}
			resign()
			<-resigned
		})
}

// What was found dropped is still lost when Redis says so, and a caller that waits learns of it.
func TestHoldThatWasFoundDroppedCanBeLost(t *testing.T) {
	var log logtest.Lines
	inBubble(t, rlock.Options{Logger: log.Logger()}, func(t *testing.T, b *bubble) {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			<-locktest.AcquireUnkept(rlock.WithOwner(t.Context()), t, b.lock).Context().Done()
		}()
		renewals(300, func() bool { return len(log.With(wasDropped)) > 0 })
		_, err := b.lock.ForceUnlock(t.Context())
		require.NoError(t, err)
		<-ended
	})
}
func TestLevelIsFoundDroppedOnceNobodyHasItsOwner(t *testing.T) {
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
		renewals(300, func() bool { return len(log.With(wasDropped)) > 0 })
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
