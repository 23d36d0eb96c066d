package redlock_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/redlock"
	"holdfast/rlock"
)

func TestQuorumIsMoreThanHalfOfTheNodes(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 7; n++ {
		t.Run(fmt.Sprint(n, " nodes"), func(t *testing.T) {
			t.Parallel()
			servers := startNodes(t, n)
			clients := newClients(t, servers, rlock.Options{})
			l := redlock.NewOn(name, atOnce, clients...)
			may := n - (n/2 + 1) // this many may be held by another
			for _, s := range servers[:may] {
				s.Do(t, "HSET", name, "somebody", "1")
			}
			unlock(t, take(t, l, longLease))
			waitUntilFree(t, servers[may:]...)
			servers[may].Do(t, "HSET", name, "somebody", "1")
			_, err := l.TryLock(t.Context(), rlock.NoWait, longLease)
			require.ErrorIs(t, err, rlock.ErrNotAcquired)
			require.ErrorContains(t, err,
				fmt.Sprintf(" of %d nodes granted it, %d are needed", n, n/2+1))
			waitUntilFree(t, servers[may+1:]...)
		})
	}
}
