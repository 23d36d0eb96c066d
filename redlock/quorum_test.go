//go:build !race

package redlock_test

import (
	"fmt"
	"math/bits"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/suite"
	"holdfast/redlock"
	"holdfast/rlock"
)

func TestQuorumIsMoreThanHalfOfTheNodes(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 7; n++ {
		inWorld(t, n, rlock.Options{}, func(t *testing.T, w *world) {
			spare := n - (n/2 + 1)
			give(t, w.Servers[:spare]...)
			unlock(t, take(t, w.lock, longLease))
			require.Equal(t, spare, w.held(t))
			give(t, w.Servers[spare])
			_, err := w.lock.TryLock(t.Context(), rlock.NoWait, longLease)
			require.ErrorIs(t, err, rlock.ErrNotAcquired)
			require.ErrorContains(t, err,
				fmt.Sprintf(" of %d nodes granted the lock, %d are needed", n, n/2+1))
			require.Equal(t, spare+1, w.held(t))
		})
	}
}

func TestLockIsAcquiredIffThreeOfFiveNodesAreAlive(t *testing.T) {
	t.Parallel()
	for how, f := range map[string]struct {
		die, live func(suite.Server, testing.TB)
	}{
		"hang":     {suite.Server.Pause, suite.Server.Resume},
		"are down": {suite.Server.Disconnect, suite.Server.Connect},
		"restart":  {suite.Server.Kill, suite.Server.Restart},
	} {
		for dead := range uint(1 << 5) {
			inWorld(t, 5, rlock.Options{}, func(t *testing.T, w *world) {
				unlock(t, take(t, w.lock, longLease)) // so that the clients are connected
				require.Zero(t, w.held(t))
				change := func(f func(suite.Server, testing.TB)) {
					for i, s := range w.Servers {
						if dead>>i&1 == 1 {
							f(s, t)
						}
					}
				}
				alive := 5 - bits.OnesCount(dead)
				change(f.die)
				hold, err := w.lock.TryLock(t.Context(), rlock.NoWait, longLease)
				if alive >= 3 {
					require.NoError(t, err, "%05b %s", dead, how)
					require.True(t, hold.Valid())
					unlock(t, hold)
				} else {
					require.ErrorIs(t, err, redlock.ErrNoQuorum, "%05b %s", dead, how)
					require.NotErrorIs(t, err, rlock.ErrNotAcquired, "it is not held")
					e := quorumError(t, err)
					require.Equal(t, 3, e.Want)
					require.LessOrEqual(t, e.Granted, alive)
					require.Len(t, e.Nodes, 5-e.Granted)
				}
				change(f.live)
				w.RequireNothingLeft(t)
			})
		}
	}
}

// A server that counted twice could form a quorum alone.
func TestServerUnderTwoNamesCountsOnce(t *testing.T) {
	t.Parallel()
	inWorld(t, 2, rlock.Options{}, func(t *testing.T, w *world) {
		same := newClientOn(t, w.Servers[0].Client(t), rlock.Options{Server: "the same"})
		l := redlock.NewOn(name, atOnce, w.clients[0], same, w.clients[1])
		hold := take(t, l, longLease)
		require.Equal(t, 2, l.Parts(hold))
		unlock(t, hold)
		w.RequireNothingLeft(t)
		w.Servers[1].Kill(t)
		_, err := l.TryLock(t.Context(), rlock.NoWait, longLease)
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		require.ErrorContains(t, err, "same server as another node")
		require.Zero(t, w.held(t))
	})
}
