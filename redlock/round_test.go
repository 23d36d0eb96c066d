package redlock_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/redlock"
	"holdfast/rlock"
)

// With two nodes silent, one refusal is enough to know that there is no quorum. It takes three to
// know that another owner holds the lock. They decide whether the error names a holder or a fault,
// and what a waiter waits for.
func TestSilentNodesDoNotHideWhoHoldsTheLock(t *testing.T) {
	inBubble(t, redlock.Options{FsyncAlways: true}, func(t *testing.T, b *bubble) {
		b.nodes[3].server.Pause()
		b.nodes[4].server.Pause()
		for i, n := range b.nodes[:3] {
			n.reply("quorum_acquire.lua", func([]string) any {
				time.Sleep(time.Duration(i) * time.Millisecond)
				return []any{20_000, "another:1", -1}
			})
		}
		// Once the silence is known, the first refusal is one too many.
		for i, took := range []time.Duration{2 * time.Millisecond, 0} {
			start := time.Now()
			_, err := b.lock.TryLock(t.Context(), rlock.NoWait, rlock.Lease(10*time.Second))
			require.ErrorIs(t, err, rlock.ErrNotAcquired, "silence known: %v", i == 1)
			require.NotErrorIs(t, err, redlock.ErrNoQuorum)
			require.Equal(t, took, time.Since(start), "no longer than until a quorum is impossible")
			time.Sleep(time.Second)
		}
	})
}

func TestNodeThatRepliesAgainIsAskedAgain(t *testing.T) {
	inBubble(t, redlock.Options{FsyncAlways: true}, func(t *testing.T, b *bubble) {
		n := b.nodes[4]
		asked := func() int { return len(n.called("quorum_acquire.lua")) }
		n.server.Pause()
		hold := take(t, b.lock, rlock.Lease(10*time.Second)) // asks it, for 1 s
		synctest.Wait()
		unlock(t, hold)
		time.Sleep(time.Second + time.Millisecond)
		for range 9 {
			unlock(t, take(t, b.lock, rlock.Lease(10*time.Second))) // do not ask it
			time.Sleep(time.Millisecond)
		}
		n.server.Resume()
		synctest.Wait()
		require.Equal(t, 1, asked())
		require.Len(t, n.called("release.lua"), 1)

		hold = take(t, b.lock, rlock.Lease(10*time.Second))
		synctest.Wait()
		require.Equal(t, 2, asked())
		unlock(t, hold)
	})
}

// No one has a quorum: the others failed as well. Callers that asked at the same time must not ask
// again at the same time.
func TestSplitVoteIsRetriedAfterARandomDelayThatDoubles(t *testing.T) {
	t.Parallel()
	firsts := map[time.Duration]int{}
	for range 12 {
		inBubble(t, redlock.Options{NodeTimeout: time.Second}, func(t *testing.T, b *bubble) {
			const took = 4 * time.Millisecond
			split := []string{"x:1", "x:1", "y:1", "y:1"}
			for i, owner := range split {
				b.nodes[i].reply("quorum_acquire.lua", func([]string) any {
					time.Sleep(took)
					return []any{20_000, owner, -1}
				})
			}
			_, err := b.lock.TryLock(t.Context(), 500*time.Millisecond, rlock.Lease(10*time.Second))
			require.ErrorIs(t, err, rlock.ErrNotAcquired)
			require.Equal(t, 500*time.Millisecond, time.Since(b.start))
			rounds := b.rounds()
			require.GreaterOrEqual(t, len(rounds), 5)
			for i := range rounds[:4] {
				delay := rounds[i+1] - rounds[i] - took
				require.GreaterOrEqual(t, delay, took<<i)
				require.Less(t, delay, 2*took<<i)
				if i == 0 {
					firsts[delay]++
				}
			}
		})
	}
	require.Greater(t, len(firsts), 6, "a random time")
}

// The holder has the lock on three of the four remaining nodes. The round is lost before the
// slowest of the three has replied. A waiter that took that for a split vote would ask again and
// again, and be deaf in between.
func TestWaiterFindsTheHolderOfAQuorumThoughItsRoundIsLostBefore(t *testing.T) {
	inBubble(t, redlock.Options{NodeTimeout: time.Second}, func(t *testing.T, b *bubble) {
		for i, took := range []time.Duration{time.Millisecond, time.Millisecond, 3 * time.Millisecond} {
			b.nodes[i].reply("quorum_acquire.lua", func(args []string) any {
				time.Sleep(took)
				return heldBy("x:1", 20_000)(args)
			})
		}
		b.nodes[4].reply("quorum_acquire.lua",
			func([]string) any { return errors.New("ERR out of order") })
		_, err := b.lock.TryLock(t.Context(), 500*time.Millisecond, rlock.Lease(10*time.Second))
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
		rounds := b.rounds()
		require.Less(t, rounds[len(rounds)-1], 100*time.Millisecond, "then it waits")
		require.Len(t, quorumError(t, err).Nodes, 4)
		require.ErrorContains(t, err, "a, b, c: held by x:1")
	})
}
