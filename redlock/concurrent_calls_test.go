package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/hooks"
	"holdfast/redlock"
	"holdfast/rlock"
)

// What a release must release is decided before any call can learn of it. This test's call learns
// of it first.
func TestCloseDuringUnlockIsNoLoss(t *testing.T) {
	t.Parallel()
	for _, kind := range []time.Duration{rlock.Watchdog, longLease} {
		servers, clients := startFive(t, rlock.Options{})
		lock := redlock.NewOn(name, atOnce, clients...)
		hold := takeOnAll(t, lock, servers, kind)
		hooks.Get[*rlock.Lock, *rlock.Hold]().OnEnd(hold, func(error) {
			for _, c := range clients[:3] {
				closeClient(t, c)
			}
		})
		var err error
		within(t, promptly, func() { err = hold.Unlock(t.Context()) })
		require.ErrorIs(t, err, rlock.ErrOutcomeUnknown)
		require.ErrorIs(t, err, rlock.ErrClosed)
		require.NotErrorIs(t, err, rlock.ErrLost)
		waitUntilFree(t, servers[3:]...)
	}
}

// Both wait for the nodes' replies, and each must see them, though there is not one reply more than
// needed.
func TestUnlockDuringACallOfTheSameOwnerTakesNoLongerThanTheNodes(t *testing.T) {
	const aMoment = 10 * time.Millisecond
	options := redlock.Options{FsyncAlways: true, NodeTimeout: 2 * time.Second}
	for what, call := range map[string]func(l *redlock.Lock, h *rlock.Hold) error{
		"extend": func(_ *redlock.Lock, h *rlock.Hold) error {
			return h.Extend(context.Background(), longLease)
		},
		"nested": func(l *redlock.Lock, h *rlock.Hold) error {
			_, err := l.TryLock(h.Context(), rlock.NoWait, longLease)
			return err
		},
	} {
		// The Unlock comes before the other request, while the nodes have that, and after its
		// replies.
		for _, after := range []time.Duration{0, aMoment, 2 * aMoment, 3 * aMoment} {
			t.Run(fmt.Sprint(what, " and after ", after), func(t *testing.T) {
				inBubble(t, options, func(t *testing.T, b *bubble) {
					hold := take(t, b.lock, time.Minute)
					synctest.Wait() // for the parts that no quorum needs
					for i, n := range b.nodes {
						answer := 3 * aMoment
						if i > 2 {
							answer = options.NodeTimeout + time.Second
						}
						n.delay("reenter.lua", answer)
						n.delay("renew.lua", answer)
						n.delay("release.lua", answer)
					}
					start := time.Now()
					var both sync.WaitGroup
					both.Go(func() {
						// It may come before the release, or after, or end with the context of the
						// hold.
						if err := call(b.lock, hold); err != nil &&
							!errors.Is(err, rlock.ErrNotHeld) &&
							!errors.Is(err, context.Canceled) {
							t.Error(err)
						}
					})
					both.Go(func() {
						time.Sleep(after)
						if err := hold.Unlock(t.Context()); err != nil {
							t.Error(err)
						}
					})
					both.Wait()
					require.Less(t, time.Since(start), 20*aMoment)
					_ = b.lock.Unlock(hold.Context()) // a level that was added before
				})
			})
		}
	}
}
