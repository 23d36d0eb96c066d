package redlock_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/redlock"
	"holdfast/rlock"
)

func TestUnlockByContextReleasesTheInnermostLevelAlsoThroughAnotherLockOfTheSameNodes(
	t *testing.T,
) {
	t.Parallel()
	servers, clients := startFive(t, rlock.Options{})
	lock := redlock.NewOn(name, atOnce, clients...)
	same := redlock.New(clients[4].NewLock(name), clients[2].NewLock(name), clients[0].NewLock(name),
		clients[1].NewLock(name), clients[3].NewLock(name)).
		WithOptions(atOnce)
	outer := take(t, lock, longLease)
	inner := takeWith(outer.Context(), t, same, longLease)
	require.Equal(t, outer.Owner(), inner.Owner())
	require.NoError(t, same.Unlock(outer.Context()))
	require.ErrorIs(t, inner.Err(), rlock.ErrReleased)
	require.True(t, outer.Valid())
	require.NoError(t, same.Unlock(outer.Context()))
	require.ErrorIs(t, outer.Err(), rlock.ErrReleased)
	require.ErrorIs(t, same.Unlock(outer.Context()), rlock.ErrNotHeld)
	require.ErrorIs(t, lock.Unlock(rlock.WithOwner(t.Context())), rlock.ErrNotHeld)
	require.ErrorIs(t, lock.Unlock(t.Context()), rlock.ErrNotHeld)
	require.ErrorContains(t, lock.Unlock(t.Context()), "no owner")
	require.ErrorIs(t, redlock.NewOn(name, atOnce, clients[:3]...).Unlock(inner.Context()),
		rlock.ErrNotHeld, "of other nodes")
	waitUntilFree(t, servers...)
}

// A lock is held as soon as a quorum of nodes has granted it. Others may grant it during an Extend.
func TestExtendAndNestedLockCountNodesThatGrantTheLockMeanwhile(t *testing.T) {
	t.Parallel()
	const late = 100 * time.Millisecond
	for what, extend := range map[string]func(*testing.T, *bubble, *rlock.Hold) error{
		"Extend": func(t *testing.T, _ *bubble, hold *rlock.Hold) error {
			return hold.Extend(t.Context(), longLease)
		},
		"TryLock": func(_ *testing.T, b *bubble, hold *rlock.Hold) error {
			_, err := b.lock.TryLock(hold.Context(), time.Minute, longLease)
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			inBubble(t, atOnce, func(t *testing.T, b *bubble) {
				b.nodes[0].server.Close()
				b.nodes[2].delay("quorum_acquire.lua", late)
				hold := take(t, b.lock, time.Minute)
				b.nodes[1].server.Pause()
				require.NoError(t, extend(t, b, hold))
				require.Equal(t, late, time.Since(b.start))
				require.Greater(t, time.Until(hold.Deadline()), longLease-time.Minute)
			})
		})
	}
}

func TestExtendDoesNotAwaitANodeThatHasYetToGrantTheLock(t *testing.T) {
	t.Parallel()
	inBubble(t, atOnce, func(t *testing.T, b *bubble) {
		hang := make(chan struct{})
		b.nodes[0].server.Close()
		b.nodes[2].reply("quorum_acquire.lua", func([]string) any { <-hang; return nil })
		hold := take(t, b.lock, time.Minute)
		synctest.Wait()
		b.nodes[1].reply("renew.lua", func([]string) any {
			b.nodes[1].reply("renew.lua", granting()["renew.lua"])
			return errors.New("BUSY for a moment")
		})
		err := hold.Extend(t.Context(), longLease)
		took := time.Since(b.start)
		close(hang)
		require.NoError(t, err, "the second round succeeds")
		require.Less(t, took, 100*time.Millisecond)
	})
}

func TestNodeThatGrantsTheLockDuringAnExtendLearnsTheLevels(t *testing.T) {
	t.Parallel()
	inBubble(t, atOnce, func(t *testing.T, b *bubble) {
		var levels atomic.Value
		b.nodes[2].delay("quorum_acquire.lua", 100*time.Millisecond)
		b.nodes[2].reply("reenter.lua", func(args []string) any {
			levels.Store(args[2])
			return 1
		})
		hold := take(t, b.lock, time.Minute)
		inner := takeWith(hold.Context(), t, b.lock, 5*time.Minute)
		for _, n := range b.nodes[:2] {
			n.server.Pause()
			defer n.server.Resume()
		}
		require.NoError(t, hold.Extend(t.Context(), longLease))
		synctest.Wait()
		require.Equal(t, "2", levels.Load())
		b.nodes[0].server.Resume()
		b.nodes[1].server.Resume()
		unlock(t, inner)
		unlock(t, hold)
	})
}

func TestNodeThatGrantsTheLockDuringANestedLockGetsTheLongestLease(t *testing.T) {
	t.Parallel()
	const late = 100 * time.Millisecond
	inBubble(t, atOnce, func(t *testing.T, b *bubble) {
		b.nodes[2].delay("quorum_acquire.lua", late)
		hold := take(t, b.lock, time.Minute)
		synctest.Wait()
		b.nodes[1].server.Pause()
		require.NoError(t, hold.Extend(t.Context(), longLease))
		b.nodes[0].server.Pause()
		inner, err := b.lock.TryLock(hold.Context(), time.Minute, time.Second)
		require.NoError(t, err)
		require.Equal(t, late, time.Since(b.start), "it needs the third node")
		synctest.Wait()

		// Without the first node the hold lasts as long as on the third.
		b.nodes[0].reply("renew.lua", func([]string) any { return []any{0} })
		b.nodes[0].server.Resume()
		synctest.Wait()
		require.NoError(t, inner.Extend(t.Context(), time.Second))
		synctest.Wait()
		require.Greater(t, time.Until(hold.Deadline()), longLease-time.Minute)
		b.nodes[1].server.Resume()
		unlock(t, inner)
		unlock(t, hold)
	})
}

func TestExtendNeedsAQuorumAndWithoutOneTheHoldIsAsBefore(t *testing.T) {
	t.Parallel()
	clientOptions := rlock.Options{CommandTimeout: time.Second}
	inBubbleOf(t, clientOptions, atOnce, func(t *testing.T, b *bubble) {
		hold := take(t, b.lock, time.Minute)
		require.NoError(t, hold.Extend(t.Context(), 2*time.Minute))
		require.Greater(t, time.Until(hold.Deadline()), time.Minute)
		b.nodes[0].server.Close()
		b.nodes[1].server.Pause()
		require.NoError(t, hold.Extend(t.Context(), 4*time.Minute), "without two of five")
		require.Greater(t, time.Until(hold.Deadline()), 3*time.Minute)

		b.nodes[2].server.Pause()
		before, start := hold.Deadline(), time.Now()
		err := hold.Extend(t.Context(), longLease)
		require.ErrorIs(t, err, rlock.ErrOutcomeUnknown)
		require.NotErrorIs(t, err, rlock.ErrLost)
		quorum := new(redlock.QuorumError)
		require.ErrorAs(t, err, &quorum)
		require.Equal(t, 2, quorum.Granted)
		require.LessOrEqual(t, time.Since(start), clientOptions.CommandTimeout)
		require.True(t, before.Equal(hold.Deadline()), "two nodes are no quorum")
		require.True(t, hold.Valid())
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, hold.Extend(ctx, longLease), context.Canceled)
		require.True(t, hold.Valid())

		b.nodes[1].server.Resume()
		b.nodes[2].server.Resume()
		synctest.Wait()
		require.NoError(t, hold.Extend(t.Context(), longLease))
		require.Greater(t, time.Until(hold.Deadline()), longLease-time.Minute)
		unlock(t, hold)
		require.ErrorIs(t, hold.Extend(t.Context(), time.Minute), rlock.ErrNotHeld)
	})
}
