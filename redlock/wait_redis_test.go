//go:build redis

package redlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/redlock"
	"holdfast/rlock"
)

func TestLockWaitsForNodesThatAreDown(t *testing.T) {
	t.Parallel()
	for _, d := range deaths {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			servers := startNodes(t, 5)
			clients, proxies := proxied(t, servers, rlock.Options{})
			warm(t, clients)
			for i := range 3 {
				d.die(t, servers[i], proxies[i])
			}
			done := queueUp(t.Context(), t, redlock.NewOn(name, hasty, clients...), longLease)
			select {
			case o := <-done:
				require.FailNow(t, "ended although a majority is down", "%v", o.Err)
			case <-time.After(5 * hasty.NodeTimeout):
			}
			for i := range 3 {
				d.back(t, servers[i], proxies[i])
			}
			hold := acquired(t, done)
			require.True(t, hold.Valid())
			unlock(t, hold)
			waitUntilFree(t, servers...)
		})
	}
}
