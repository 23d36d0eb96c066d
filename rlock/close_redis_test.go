//go:build redis

package rlock_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

func TestCloseEndsHoldsAndLeavesTheLocks(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	client := newClient(t, s, rlock.Options{WatchdogLease: shortLease})
	outer, inner := make(map[string]*rlock.Hold), make(map[string]*rlock.Hold)
	for _, k := range kinds {
		outer[k.name] = take(t, k.lock(client, k.name), rlock.Watchdog)
		inner[k.name] = takeWith(outer[k.name].Context(), t, k.lock(client, k.name), rlock.Watchdog)
	}
	closeClient(t, client)
	for _, k := range kinds {
		for _, hold := range []*rlock.Hold{outer[k.name], inner[k.name]} {
			require.ErrorIs(t, hold.Err(), rlock.ErrClosed)
			require.ErrorIs(t, context.Cause(hold.Context()), rlock.ErrClosed)
			require.False(t, hold.Valid())
		}
		require.Equal(t, k.hash(outer[k.name].Owner(), 2), s.DoMap(t, "HGETALL", k.name))
	}
	for _, k := range kinds {
		waitUntilFree(t, s, k.name) // it is not renewed
	}
}

func TestReleaseOnCloseReleasesWhatOtherNodesHave(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3)
	client := newClientOn(t, cluster.Client(t),
		rlock.Options{ReleaseOnClose: true, CommandTimeout: 500 * time.Millisecond})
	names := oneLockPerNode(t, cluster)
	for _, name := range names {
		take(t, client.NewLock(name), longLease)
		take(t, client.NewLock("{"+name+"}:more"), longLease)
	}
	cluster.Nodes[0].Pause(t)
	closing := make(chan error, 1)
	go func() { closing <- client.Close(t.Context()) }()
	for _, node := range cluster.Nodes[1:] {
		waitUntilFree(t, node, names[node])
		waitUntilFree(t, node, "{"+names[node]+"}:more")
	}
	cluster.Nodes[0].Resume(t)
	require.NoError(t, receive(t, closing, "Close hangs"))
}

func TestCloseDoesNotWaitForCallersThatKeepComing(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	onEveryKind(t, func(t *testing.T, k kind) { requireCloseToEnd(t, s, k) })
}

// requireCloseToEnd requires that Close returns while callers want the lock again and again.
func requireCloseToEnd(t *testing.T, s *redistest.Server, k kind) {
	t.Helper()
	client := newClient(t, s, rlock.Options{})
	stop := make(chan struct{})
	var callers sync.WaitGroup
	defer callers.Wait()
	defer close(stop)
	var held atomic.Int64
	for range 64 {
		callers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				hold, err := k.lock(client, k.name).TryLock(t.Context(), time.Second, time.Minute)
				if err != nil {
					// or 64 refused goroutines keep other tests from the processors
					pause(stop, time.Millisecond)
					continue
				}
				held.Add(1)
				_ = hold.Unlock(t.Context())
			}
		})
	}
	eventually(t, func() bool { return held.Load() > 10 }, "the callers are at work")
	closeClient(t, client)
}
