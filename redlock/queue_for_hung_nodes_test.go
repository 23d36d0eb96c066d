package redlock_test

import (
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/redlock"
	"holdfast/rlock"
)

// tryAtOnce tries that many locks of the bubble's nodes at once, once each, and returns how each
// ended and when.
func (b *bubble) tryAtOnce(
	t *testing.T, n int, o redlock.Options,
) (holds []*rlock.Hold, errs []error, ended []time.Duration) {
	clients := make([]*rlock.Client, len(b.nodes))
	for i, node := range b.nodes {
		clients[i] = node.client
	}
	holds, errs, ended = make([]*rlock.Hold, n), make([]error, n), make([]time.Duration, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			lock := redlock.NewOn(name+strconv.Itoa(i), o, clients...)
			holds[i], errs[i] = lock.TryLock(t.Context(), rlock.NoWait, 10*time.Second)
			ended[i] = time.Since(b.start)
		})
	}
	all.Wait()
	return holds, errs, ended
}

// There are more locks than may be in flight, so most are queued, for longer than a node may take
// to reply. That is no fault of the nodes: all of them reply in time.
func TestTimeInTheQueueDoesNotCountAgainstTheNodes(t *testing.T) {
	t.Parallel()
	o := redlock.Options{NodeTimeout: 100 * time.Millisecond, FsyncAlways: true}
	inBubble(t, o, func(t *testing.T, b *bubble) {
		for _, n := range b.nodes {
			n.delay("quorum_acquire.lua", time.Millisecond)
		}
		holds, errs, ended := b.tryAtOnce(t, 1000, o)
		for i := range holds {
			require.NoError(t, errs[i], "lock %d", i)
		}
		require.Greater(t, slices.Max(ended), o.NodeTimeout, "otherwise this proves nothing")
		for _, hold := range holds {
			unlock(t, hold)
		}
	})
}

// The other two nodes are busy for longer, which does not matter without a third.
func TestLocksQueuedForNodesThatHangWaitForOneNodeTimeoutOnly(t *testing.T) {
	t.Parallel()
	o := redlock.Options{NodeTimeout: 100 * time.Millisecond, FsyncAlways: true}
	inBubble(t, o, func(t *testing.T, b *bubble) {
		for _, n := range b.nodes[:3] {
			n.server.Pause()
		}
		for _, n := range b.nodes[3:] {
			n.delay("quorum_acquire.lua", time.Millisecond)
		}
		_, errs, ended := b.tryAtOnce(t, 1000, o)
		for i := range errs {
			require.ErrorIs(t, errs[i], redlock.ErrNoQuorum)
			require.Equal(t, o.NodeTimeout, ended[i])
		}
	})
}
