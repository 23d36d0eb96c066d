package redlock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

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
