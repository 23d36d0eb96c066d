package redlock_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/hooks"
	"holdfast/rlock"
)

// goneFrom makes the nodes reply that the lock is not held there.
func goneFrom(nodes []*bubbleNode) {
	for _, n := range nodes {
		n.reply("reenter.lua", func([]string) any { return 0 })
		n.reply("renew.lua", func([]string) any { return []any{0} }) // for Extend
	}
}

// requireLost requires that the hold has ended with a loss, everywhere.
func requireLost(t testing.TB, h *rlock.Hold) {
	t.Helper()
	require.ErrorIs(t, h.Err(), rlock.ErrLost)
	require.ErrorIs(t, context.Cause(h.Context()), rlock.ErrLost)
	select {
	case <-h.Done():
	default:
		require.FailNow(t, "Done is not closed")
	}
}

// A node's reply, or a watchdog, ends the levels on its own goroutine. Here it is held up between
// the inner one and the outer one.
func TestCallThatReturnsErrLostReturnsAfterTheHoldHasEnded(t *testing.T) {
	const lease = 10 * time.Second
	calls := map[string]func(b *bubble, outer *rlock.Hold) error{
		"Extend": func(_ *bubble, outer *rlock.Hold) error {
			return outer.Extend(context.Background(), lease)
		},
		"TryLock": func(b *bubble, outer *rlock.Hold) error {
			_, err := b.lock.TryLock(context.WithoutCancel(outer.Context()), rlock.NoWait, lease)
			return err
		},
		"Lock": func(b *bubble, outer *rlock.Hold) error {
			_, err := b.lock.Lock(context.WithoutCancel(outer.Context()), lease)
			return err
		},
		"Unlock": func(_ *bubble, outer *rlock.Hold) error { return outer.Unlock(context.Background()) },
	}
	losses := map[string]func(b *bubble, outer *rlock.Hold){
		"the nodes say so": func(b *bubble, _ *rlock.Hold) { goneFrom(b.nodes[:3]) },
		"the lease ends": func(_ *bubble, outer *rlock.Hold) {
			time.Sleep(time.Until(outer.Deadline()))
		},
	}
	for _, c := range []struct{ loss, call string }{
		{"the nodes say so", "Extend"},
		{"the nodes say so", "TryLock"},
		{"the nodes say so", "Lock"},
		{"the lease ends", "Extend"},
		{"the lease ends", "Unlock"},
	} {
		t.Run(c.call+", "+c.loss, func(t *testing.T) {
			inBubble(t, atOnce, func(t *testing.T, b *bubble) {
				outer := take(t, b.lock, lease)
				synctest.Wait() // for all nodes
				inner := takeWith(outer.Context(), t, b.lock, lease)
				var seen atomic.Bool
				hooks.Get[*rlock.Lock, *rlock.Hold]().OnEnd(inner, func(error) {
					for i := 0; i < 10_000 && !seen.Load(); i++ {
						runtime.Gosched() // lets all others run that do not wait for this
					}
				})
				losses[c.loss](b, outer)
				require.ErrorIs(t, calls[c.call](b, outer), rlock.ErrLost)
				requireLost(t, outer)
				seen.Store(true)
				synctest.Wait()
				requireLost(t, inner)
			})
		})
	}
}

func TestOwnerThatLearnedOfALossAcquiresTheLockAnew(t *testing.T) {
	t.Parallel()
	inBubble(t, atOnce, func(t *testing.T, b *bubble) {
		goneFrom(b.nodes[:3])
		owner := rlock.WithOwner(t.Context())
		for range 500 {
			lost := takeWith(owner, t, b.lock, longLease)
			ctx := lost.Context()
			synctest.Wait() // for all nodes
			require.ErrorIs(t, lost.Extend(t.Context(), longLease), rlock.ErrLost)
			require.ErrorIs(t, context.Cause(ctx), rlock.ErrLost)
			requireLost(t, lost)
			hold := takeWith(owner, t, b.lock, longLease)
			require.NotEqual(t, lost.Owner(), hold.Owner())
			unlock(t, hold)
			require.ErrorIs(t, lost.Unlock(t.Context()), rlock.ErrLost)
		}
	})
}

// The session outlives the lost acquisition, because the second call waits for it.
func TestCallThatWaitedForOneThatLearnedOfALossAcquiresTheLockAnew(t *testing.T) {
	t.Parallel()
	inBubble(t, atOnce, func(t *testing.T, b *bubble) {
		for _, n := range b.nodes[:3] {
			n.reply("reenter.lua", func([]string) any { time.Sleep(time.Second); return 0 })
		}
		owner := rlock.WithOwner(t.Context())
		lost := takeWith(owner, t, b.lock, longLease)
		synctest.Wait() // for all nodes
		first, second := make(chan error), make(chan error)
		var hold *rlock.Hold
		go func() {
			_, err := b.lock.Lock(owner, longLease)
			first <- err
		}()
		synctest.Wait()
		go func() {
			var err error
			hold, err = b.lock.Lock(owner, longLease)
			second <- err
		}()
		require.ErrorIs(t, <-first, rlock.ErrLost)
		require.NoError(t, <-second)
		require.NotEqual(t, lost.Owner(), hold.Owner())
		unlock(t, hold)
		require.ErrorIs(t, lost.Unlock(t.Context()), rlock.ErrLost)
	})
}
