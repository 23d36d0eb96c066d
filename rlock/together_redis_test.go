//go:build redis

package rlock_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

func TestLocksOfABatchAreHeldLikeAnyOther(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{WatchdogLease: 6 * time.Second})
	ctx := rlock.WithOwner(t.Context())
	holds := takeThree(ctx, t, c, rlock.Watchdog)
	inner := takeWith(ctx, t, c.NewLock("b"), longLease)
	require.Equal(t, holds[1].Owner(), inner.Owner())
	waitForRenewal(t, holds[:1])
	require.NoError(t, holds[2].Unlock(ctx))
	require.NoError(t, c.NewLock("a").Unlock(ctx))
	require.NoError(t, holds[1].Unlock(ctx))
	unlock(t, inner)
	requireFree(t, s, "a")
	requireFree(t, s, "b")
	requireFree(t, s, "c")
	require.Zero(t, rlock.Sessions(c))
}

// They lock each session in either order, but are served in one order.
func TestManyCallsOfOneOwnerCountTheirLevelsRight(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{CommandTimeout: time.Minute}) // the wait of these calls
	ctx := rlock.WithOwner(t.Context())
	first := takeThree(ctx, t, c, longLease)
	var calls sync.WaitGroup
	failed := make(chan error, 1000)
	for i := range 20 {
		calls.Go(func() {
			for range 5 {
				if i%4 == 0 {
					failed <- first[i%3].Extend(ctx, longLease)
					continue
				}
				holds, err := hook.TryBatch(ctx, longLease, three(c))
				failed <- err
				if err == nil {
					for _, err := range hook.ReleaseBatch(holds) {
						failed <- err
					}
				}
			}
		})
	}
	calls.Wait()
	close(failed)
	for err := range failed {
		require.NoError(t, err)
	}
	for i, lock := range three(c) {
		require.Equal(t, "1", s.DoString(t, "HGET", lock.Name(), first[i].Owner()))
	}
	releaseThree(t, first)
	require.Empty(t, s.Keys(t))
	require.Zero(t, rlock.Sessions(c))
}
