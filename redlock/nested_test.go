package redlock_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/redlock"
	"holdfast/rlock"
)

func TestLocksOfTheSameNodesInAnyOrderAreTheSameLock(t *testing.T) {
	t.Parallel()
	inBubble(t, atOnce, func(t *testing.T, b *bubble) {
		c := b.clients
		same := redlock.NewOn(name, atOnce, c[4], c[2], c[0], c[1], c[3])
		outer := take(t, b.lock, longLease)
		inner := takeWith(outer.Context(), t, same, longLease)
		require.Equal(t, outer.Owner(), inner.Owner())
		require.NoError(t, same.Unlock(outer.Context()))
		require.ErrorIs(t, inner.Err(), rlock.ErrReleased)
		require.True(t, outer.Valid())
		require.ErrorIs(t, redlock.NewOn(name, atOnce, c[:3]...).Unlock(outer.Context()),
			rlock.ErrNotHeld, "of other nodes")
		require.NoError(t, same.Unlock(outer.Context()))
		require.ErrorIs(t, outer.Err(), rlock.ErrReleased)
	})
}

// A lock is held as soon as a quorum of nodes has granted it. Others may grant it during an Extend.
func TestExtendAndNestedLockCountNodesThatGrantTheLockMeanwhile(t *testing.T) {
	t.Parallel()
	const late = 100 * time.Millisecond
	for _, nested := range []bool{false, true} {
		inBubble(t, atOnce, func(t *testing.T, b *bubble) {
			b.nodes[0].server.Close()
			b.nodes[2].delay("quorum_acquire.lua", late)
			hold := take(t, b.lock, rlock.Lease(time.Minute))
			b.nodes[1].server.Pause()
			var err error
			if nested {
				_, err = b.lock.TryLock(hold.Context(), time.Minute, longLease)
			} else {
				err = hold.Extend(t.Context(), longLease)
			}
			require.NoError(t, err)
			require.Equal(t, late, time.Since(b.start))
			require.Greater(t, time.Until(hold.Deadline()), time.Duration(longLease)-time.Minute)
		})
	}
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
		hold := take(t, b.lock, rlock.Lease(time.Minute))
		inner := takeWith(hold.Context(), t, b.lock, rlock.Lease(5*time.Minute))
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
		hold := take(t, b.lock, rlock.Lease(time.Minute))
		synctest.Wait()
		b.nodes[1].server.Pause()
		require.NoError(t, hold.Extend(t.Context(), longLease))
		b.nodes[0].server.Pause()
		inner, err := b.lock.TryLock(hold.Context(), time.Minute, rlock.Lease(time.Second))
		require.NoError(t, err)
		require.Equal(t, late, time.Since(b.start), "it needs the third node")
		synctest.Wait()

		// Without the first node the hold lasts as long as on the third.
		b.nodes[0].reply("renew.lua", func([]string) any { return []any{0} })
		b.nodes[0].server.Resume()
		synctest.Wait()
		require.NoError(t, inner.Extend(t.Context(), rlock.Lease(time.Second)))
		synctest.Wait()
		require.Greater(t, time.Until(hold.Deadline()), time.Duration(longLease)-time.Minute)
		b.nodes[1].server.Resume()
		unlock(t, inner)
		unlock(t, hold)
	})
}

func TestExtendNeedsAQuorumAndWithoutOneTheHoldIsAsBefore(t *testing.T) {
	t.Parallel()
	clientOptions := rlock.Options{CommandTimeout: time.Second}
	inBubbleOf(t, clientOptions, atOnce, func(t *testing.T, b *bubble) {
		hold := take(t, b.lock, rlock.Lease(time.Minute))
		b.nodes[0].server.Close()
		b.nodes[1].server.Pause()
		require.NoError(t, hold.Extend(t.Context(), rlock.Lease(4*time.Minute)), "without two of five")
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

		b.nodes[1].server.Resume()
		b.nodes[2].server.Resume()
		synctest.Wait()
		require.NoError(t, hold.Extend(t.Context(), longLease))
		require.Greater(t, time.Until(hold.Deadline()), time.Duration(longLease)-time.Minute)
		unlock(t, hold)
	})
}

// A part is lost after its node has replied to Extend, and another node has not replied at all. The
// nodes that are left are no quorum, so Extend must ask again.
func TestExtendDoesNotCountAPartThatWasLostSince(t *testing.T) {
	t.Parallel()
	inBubble(t, atOnce, func(t *testing.T, b *bubble) {
		b.nodes[4].server.Close()
		hold := take(t, b.lock, rlock.Lease(time.Minute))
		synctest.Wait()
		time.AfterFunc(100*time.Millisecond, func() { closeClient(t, b.clients[0]) })
		for _, n := range b.nodes[1:4] {
			n.delay("renew.lua", 200*time.Millisecond)
		}
		b.nodes[3].reply("renew.lua", func([]string) any {
			b.nodes[3].reply("renew.lua", granting()["renew.lua"])
			time.Sleep(300 * time.Millisecond)
			return errors.New("BUSY for a moment")
		})
		require.NoError(t, hold.Extend(t.Context(), longLease))
		require.Equal(t, 3, b.lock.Parts(hold), "otherwise this proves nothing")
		require.Greater(t, time.Until(hold.Deadline()), time.Duration(longLease)-time.Minute)
		unlock(t, hold)
	})
}
