//go:build redis

package redlock_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/redlock"
	"holdfast/rlock"
)

// The nodes of a queue are in the order of its first lock.
func TestReleaseWakesAWaiterWhateverTheOrderOfItsNodes(t *testing.T) {
	t.Parallel()
	servers := startNodes(t, 5)
	clients := newClients(t, servers, rlock.Options{})
	backwards := slices.Clone(clients)
	slices.Reverse(backwards)
	warm(t, clients)
	giveOne(t, servers[:3], name)
	ctx, cancel := context.WithCancel(t.Context())
	head := queueUp(ctx, t, redlock.NewOn(name, atOnce, clients...), longLease)
	waitForListeners(t, servers, name, 1)
	second := queueUp(t.Context(), t, redlock.NewOn(name, atOnce, backwards...), longLease)
	cancel()
	require.Error(t, result(t, head).Err)
	calls := callsDuring(t, servers, time.Second)
	require.LessOrEqual(t, calls, 10, "it hears its own releases on the other two")
	within(t, promptly, func() {
		giveBack(t, servers[:3], name)
		unlock(t, acquired(t, second))
	})
	waitUntilFree(t, servers...)
}
