package redlock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/redlock"
	"holdfast/rlock"
)

func TestTracerHearsWhoRefusedARoundAndOfANodeThatHangs(t *testing.T) {
	t.Parallel()
	tr := new(locktest.Tracer)
	inBubbleOf(t, rlock.Options{Tracer: tr}, atOnce, func(t *testing.T, b *bubble) {
		for _, n := range b.nodes {
			n.reply("quorum_acquire.lua", heldBy("somebody:1", 600_000))
		}
		_, err := b.lock.TryLock(t.Context(), 300*time.Millisecond, longLease)
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
		round := locktest.Heard[rlock.RoundEnd](tr)[0]
		require.GreaterOrEqual(t, len(round.Refused), 3)
		for _, node := range round.Refused {
			require.NotEmpty(t, node.Server)
			require.ErrorAs(t, node.Err, new(*rlock.HeldError))
		}
		require.Len(t, locktest.Heard[rlock.WaitStart](tr), 1)
		require.Len(t, locktest.Heard[rlock.WaitEnd](tr), 1)
		require.Positive(t, locktest.Heard[rlock.AcquireEnd](tr)[0].Waited)
		require.Empty(t, locktest.Heard[rlock.NodeFailed](tr), "a node with another holder works")

		for _, n := range b.nodes {
			n.reply("quorum_acquire.lua", granting()["quorum_acquire.lua"])
		}
		b.nodes[2].server.Pause()
		for range 2 { // once it has not replied for its time-out, it is not asked any more
			hold := take(t, b.lock, longLease)
			time.Sleep(atOnce.NodeTimeout + time.Millisecond)
			synctest.Wait()
			unlock(t, hold)
		}
		for _, failed := range locktest.Heard[rlock.NodeFailed](tr) {
			require.Equal(t, "c", failed.Server)
			require.Equal(t, name, failed.Lock.Name)
			require.ErrorIs(t, failed.Err, redlock.ErrNoReply)
			require.ErrorContains(t, failed.Err, "no reply for")
		}
		require.Equal(t, "acquire", locktest.Heard[rlock.NodeFailed](tr)[0].Operation)
		rounds := locktest.Heard[rlock.RoundEnd](tr)
		refused := rounds[len(rounds)-1].Refused
		require.Len(t, refused, 1)
		require.Equal(t, "c", refused[0].Server)
	})
}
