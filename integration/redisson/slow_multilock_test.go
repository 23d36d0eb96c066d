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

// This is a known breach that this library cannot prevent: Redisson's MultiLock, with a wait and a
// lease, acquires each part for twice the wait. When it has all of them it sets the lease of
// whatever is there, without checking the owner. If its requests come later than that, they find
// nothing, or another owner's lock. When this test fails the README must change.
func TestRedissonsMultiLockThatIsSlowHoldsNothing(t *testing.T) {
	t.Parallel()
	const (
		wait  = 3 * time.Second // enough to acquire both parts in time on a busy machine
		late  = 400 * time.Millisecond
		lease = 6 * time.Second
	)
	java := startPeer(t)
	s := newSingle(t, java)
	network := faultproxy.Start(t, s.addresses()[0])
	client := newName()
	java.open(t, client, s.topology, []string{network.Addr()}, watchdogLease)
	t.Cleanup(func() { require.NoError(t, network.Heal()) })
	slow := newThread(java, []string{client})
	var all, first, last target
	var waiting <-chan outcome

	// Redisson learns this much later that it holds the last part. Meanwhile its next requests are
	// held, unless this test stands still.
	network.DelayReplies(late)
	for held := false; !held; {
		all = target{multi, []string{newName(), newName()}}
		first, last = all.parts()[0], all.parts()[1]
		waiting = inBackground(func() error { return slow.tryLock(all, wait, rlock.Lease(lease)) })
		var free time.Time // when nobody had the last part
		locktest.Eventually(t, func() bool {
			now := time.Now()
			if len(s.hgetall(t, last.name())) == 1 {
				return true
			}
			free = now
			return false
		}, "Redisson does not acquire the last part")
		network.HoldRequests()
		held = time.Since(free) < late
		if !held {
			network.Pass()
			<-waiting
			_ = slow.unlock(all) // it may have failed
		}
	}
	for _, part := range all.parts() {
		require.Greater(t, s.pttl(t, part.name()), wait, "its lease is not that of a part")
		require.LessOrEqual(t, s.pttl(t, part.name()), 2*wait)
	}
	s.requireFree(t, all)
	ours := newGoActor(t, s)
	acquire(t, ours, first, longLease)
	stillWaits(t, waiting)

	network.Pass()
	acquired(t, waiting) // according to Redisson
	s.requireFree(t, last)
	require.Zero(t, count(t, slow, all))
	require.Equal(t, 1, count(t, ours, first))
	require.LessOrEqual(t, s.pttl(t, first.name()), lease,
		"the lease is unchanged, so Redisson checks the owner")
	hold := ours.(*goActor).last
	require.True(t, hold.Valid(), "this library knows")
	require.ErrorIs(t, slow.unlock(all), errNotHolder)

	s.requireFree(t, first)
	require.ErrorIs(t, hold.Unlock(), rlock.ErrLost)
}
