package redlock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/redlock"
	"holdfast/rlock"
)

// The holder has the lock on three of the four remaining nodes. The round is lost before the
// slowest of the three has replied. A waiter that took that for a split vote would ask again and
// again, and be deaf in between.
func TestWaiterFindsTheHolderOfAQuorumThoughItsRoundIsLostBefore(t *testing.T) {
	const free, slow, dead = 0, 3, 4
	inBubble(t, redlock.Options{NodeTimeout: time.Second}, func(t *testing.T, b *bubble) {
		for i, node := range b.nodes {
			switch i {
			case free:
			case dead:
				node.reply("quorum_acquire.lua",
					func([]string) any { return errors.New("ERR out of order") })
			default:
				node.reply("quorum_acquire.lua", func(args []string) any {
					time.Sleep(time.Millisecond)
					if i == slow {
						time.Sleep(2 * time.Millisecond)
					}
					return heldBy("x:1", 20_000)(args)
				})
			}
		}
		_, err := b.lock.TryLock(t.Context(), 500*time.Millisecond, 10*time.Second)
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
		rounds := b.rounds()
		require.Less(t, rounds[len(rounds)-1], 100*time.Millisecond, "then it waits")
		require.Len(t, quorumError(t, err).Nodes, 4)
		require.ErrorContains(t, err, "b, c, d: held by x:1")
	})
}
