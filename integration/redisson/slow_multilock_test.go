//go:build interop

package redisson_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/faultproxy"
	"holdfast/internal/locktest"
	"holdfast/rlock"
)

// A known breach, which this library can do nothing about: Redisson's MultiLock, with a wait and a lease, takes each part for
// twice the wait, and when it has all of them sets the lease of what is there, without asking whose it is. Requests that come
// later than that find nothing, or the lock of somebody else. The README is changed on the day on which this test fails.
func TestRedissonsMultiLockThatIsSlowHoldsNothing(t *testing.T) {
	const (
		wait  = 2 * time.Second // so that a busy machine takes both parts in time
		lease = 6 * time.Second
	)
	java := startPeer(t)
	s := newSingle(t, java)
	network := faultproxy.Start(t, s.addresses()[0])
	client := newName()
	java.open(t, client, s.topology, []string{network.Addr()}, watchdogLease)
	t.Cleanup(func() { require.NoError(t, network.Heal()) })
	slow := newThread(java, []string{client})
	all := target{multi, []string{newName(), newName()}}
	first, last := all.parts()[0], all.parts()[1]

	// Redisson learns this much later that it has the last part: in this time its next requests are stopped.
	network.DelayReplies(wait / 5)
	waiting := inBackground(func() error { return slow.tryLock(all, wait, lease) })
	locktest.Eventually(t, func() bool { return len(s.hgetall(t, last.name())) == 1 }, "Redisson does not take the last part")
	network.HoldRequests()
	for _, part := range all.parts() {
		require.Greater(t, s.pttl(t, part.name()), wait, "its lease is not that of a part")
		require.LessOrEqual(t, s.pttl(t, part.name()), 2*wait)
	}
	s.requireFree(t, all)
	ours := newGoActor(t, s)
	take(t, ours, first, longLease)
	stillWaits(t, waiting)

	network.Pass()
	acquired(t, waiting) // says Redisson
	s.requireFree(t, last)
	require.Zero(t, count(t, slow, all))
	require.Equal(t, 1, count(t, ours, first))
	require.LessOrEqual(t, s.pttl(t, first.name()), lease, "the lease is still ours: then Redisson asks whose it is")
	hold := ours.(*goActor).last
	require.True(t, hold.Valid(), "we know")
	require.ErrorIs(t, slow.unlock(all), errNotHolder)

	s.requireFree(t, first)
	require.ErrorIs(t, hold.Unlock(t.Context()), rlock.ErrLost)
}
