//go:build redis

package multilock_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
)

type process = locktest.Process

// watchLease requires that one owner holds a lock without a gap, and never for longer than lease,
// until stop is called, which returns the shortest rest of the lease.
func watchLease(
	t *testing.T, s *redistest.Server, lock string, lease time.Duration,
) (stop func() (shortest time.Duration)) {
	t.Helper()
	var watching sync.WaitGroup
	end := make(chan struct{})
	shortest, longest := lease, time.Duration(0)
	var failure error
	owners := make(map[string]bool)
	watching.Go(func() {
		for tick := time.NewTicker(2 * time.Millisecond); ; {
			select {
			case <-end:
				tick.Stop()
				return
			case <-tick.C:
			}
			reply, err := s.Call("PTTL", lock)
			if err != nil {
				failure = err
				return
			}
			milliseconds := reply.(int64)
			left := time.Duration(milliseconds) * time.Millisecond
			shortest, longest = min(shortest, left), max(longest, left)
			if reply, err = s.Call("HKEYS", lock); err != nil {
				failure = err
				return
			}
			for _, owner := range reply.([]any) {
				owners[owner.(string)] = true
			}
		}
	})
	return sync.OnceValue(func() time.Duration {
		close(end)
		watching.Wait()
		require.NoError(t, failure)
		require.Len(t, owners, 1)
		require.LessOrEqual(t, longest, lease, "a lease is longer than asked for")
		return shortest
	})
}
