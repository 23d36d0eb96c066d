package redlock_test

import (
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast/redlock"
	"holdfast/rlock"
)

// askedOfANode has the scripts that a lock without renewals sends.
var askedOfANode = []string{"quorum_acquire.lua", "reenter.lua", "release.lua", "renew.lua"}

// away makes the replies of a node take that long from now on.
func (n *bubbleNode) away(roundTrip time.Duration) {
	for _, script := range askedOfANode {
		n.delay(script, roundTrip)
	}
}

// anew returns a new Lock value for the same lock.
func (b *bubble) anew() *redlock.Lock {
	return redlock.NewOn(name, redlock.Options{}, b.clients...)
}

// learn locks and unlocks so often that the round trips of all nodes that reply are known.
func (b *bubble) learn(t *testing.T) {
	t.Helper()
	for range 40 {
		hold := take(t, b.anew(), rlock.Lease(10*time.Second))
		synctest.Wait()
		unlock(t, hold)
		synctest.Wait()
	}
}

func TestFreeLockIsAcquiredAtOnceHoweverFarTheNodesAre(t *testing.T) {
	t.Parallel()
	for _, roundTrip := range []time.Duration{100 * time.Microsecond, 200 * time.Millisecond} {
		for _, hangs := range []int{-1, 0, 25} { // from which time on one node hangs
			inBubble(t, redlock.Options{}, func(t *testing.T, b *bubble) {
				for _, n := range b.nodes {
					n.away(roundTrip)
				}
				for i := range 50 {
					if i == hangs {
						b.nodes[2].server.Pause()
					}
					start := time.Now()
					hold, err := b.anew().TryLock(t.Context(), rlock.NoWait, rlock.Lease(30*time.Second))
					require.NoError(t, err)
					require.Equal(t, roundTrip, time.Since(start))
					synctest.Wait() // for the other nodes, which reply at the same time
					require.NoError(t, hold.Extend(t.Context(), rlock.Lease(30*time.Second)))
					require.Equal(t, 2*roundTrip, time.Since(start))
					synctest.Wait()
					unlock(t, hold)
					require.Equal(t, 3*roundTrip, time.Since(start))
					synctest.Wait()
				}
			})
		}
	}
}

// refusedAfter tries the lock, which must fail for want of a quorum after that time.
func (b *bubble) refusedAfter(t *testing.T, want time.Duration, lease rlock.Lease) {
	t.Helper()
	start := time.Now()
	_, err := b.anew().TryLock(t.Context(), rlock.NoWait, lease)
	require.ErrorIs(t, err, redlock.ErrNoQuorum)
	require.Equal(t, want, time.Since(start))
}

func TestNodesThatHangAreWaitedForThreeOfTheirRoundTrips(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		roundTrip time.Duration
		lease     rlock.Lease
		timeout   time.Duration
	}{
		{100 * time.Microsecond, rlock.Lease(3 * time.Second), 15 * time.Millisecond}, // lease/200
		{100 * time.Microsecond, rlock.Watchdog, 50 * time.Millisecond},
		{30 * time.Millisecond, rlock.Lease(3 * time.Second), 90 * time.Millisecond},
		{80 * time.Millisecond, rlock.Watchdog, 240 * time.Millisecond},
		// a tenth of the lease
		{200 * time.Millisecond, rlock.Lease(3 * time.Second), 300 * time.Millisecond},
	} {
		inBubble(t, redlock.Options{}, func(t *testing.T, b *bubble) {
			for _, n := range b.nodes {
				n.away(c.roundTrip)
			}
			b.learn(t)
			for _, n := range b.nodes[:3] {
				n.server.Pause()
			}
			b.refusedAfter(t, c.timeout, c.lease)
			time.Sleep(time.Millisecond)
			b.refusedAfter(t, 0, c.lease) // it is known that they hang
		})
	}
}

// Each node has its own time-out. Without a fourth of them the other three are no quorum, whatever
// the slow one replies.
func TestSlowNodeDoesNotMakeTheTimeoutsOfTheOthersLong(t *testing.T) {
	inBubble(t, redlock.Options{}, func(t *testing.T, b *bubble) {
		b.nodes[4].away(200 * time.Millisecond)
		b.learn(t)
		time.Sleep(time.Second)
		for _, n := range b.nodes[:3] {
			n.server.Pause()
		}
		b.refusedAfter(t, 50*time.Millisecond, rlock.Lease(10*time.Second))
		b.nodes[4].away(0) // up to 80 commands are still queued there, and Close waits
	})
}

// As when a route changes.
func TestLateRepliesTeachThatTheNodesAreFarNow(t *testing.T) {
	t.Parallel()
	const roundTrip = 80 * time.Millisecond
	inBubble(t, redlock.Options{}, func(t *testing.T, b *bubble) {
		b.learn(t)
		for _, n := range b.nodes {
			n.away(roundTrip)
		}
		b.refusedAfter(t, 50*time.Millisecond, rlock.Lease(10*time.Second))
		start := time.Now()
		hold, err := b.anew().TryLock(t.Context(), 10*time.Second, rlock.Lease(10*time.Second))
		require.NoError(t, err)
		require.Less(t, time.Since(start), 20*roundTrip)
		unlock(t, hold)
		time.Sleep(time.Second)
		start = time.Now()
		unlock(t, take(t, b.anew(), rlock.Lease(10*time.Second)))
		require.Equal(t, 2*roundTrip, time.Since(start))
	})
}

// An error may come from this side, and quickly: a refused connection says nothing about the
// distance of the node.
func TestErrorsTeachNoRoundTrip(t *testing.T) {
	inBubble(t, redlock.Options{}, func(t *testing.T, b *bubble) {
		for _, n := range b.nodes {
			n.reply("quorum_acquire.lua", func([]string) any { return errors.New("LOADING") })
		}
		for range 40 {
			b.refusedAfter(t, 0, rlock.Lease(3*time.Second))
			synctest.Wait()
		}
		for _, n := range b.nodes {
			n.away(200 * time.Millisecond)
		}
		start := time.Now()
		unlock(t, take(t, b.anew(), rlock.Lease(3*time.Second)))
		require.Equal(t, 400*time.Millisecond, time.Since(start))
	})
}

// This is about nodes that have never replied: they may be far away.
func TestSilentNodesAreWaitedForATenthOfTheLeaseAtMost(t *testing.T) {
	for _, c := range []struct {
		given   time.Duration
		lease   rlock.Lease
		timeout time.Duration
	}{
		{0, rlock.Lease(3 * time.Millisecond), 5 * time.Millisecond},
		{0, rlock.Lease(50 * time.Millisecond), 5 * time.Millisecond},
		{0, rlock.Lease(time.Second), 100 * time.Millisecond},
		{0, rlock.Lease(10 * time.Second), time.Second},
		{0, rlock.Watchdog, 3 * time.Second},
		{0, rlock.Lease(time.Hour), 3 * time.Second}, // the CommandTimeout
		{123 * time.Millisecond, rlock.Lease(time.Second), 123 * time.Millisecond},
		{time.Millisecond, rlock.Lease(time.Hour), time.Millisecond},
	} {
		o := redlock.Options{NodeTimeout: c.given, FsyncAlways: true}
		inBubble(t, o, func(t *testing.T, b *bubble) {
			for _, n := range b.nodes[:3] {
				n.server.Pause()
			}
			_, err := b.lock.TryLock(t.Context(), rlock.NoWait, c.lease)
			require.ErrorIs(t, err, redlock.ErrNoQuorum)
			require.Equal(t, c.timeout, time.Since(b.start), "%+v", c)
		})
	}
}

// There are more locks than may be in flight, so most are queued, for longer than a node may take
// to reply. That is no fault of the nodes: all of them reply in time.
func TestTimeInTheQueueDoesNotCountAgainstTheNodes(t *testing.T) {
	t.Parallel()
	inBubble(t, hasty, func(t *testing.T, b *bubble) {
		for _, n := range b.nodes {
			n.delay("quorum_acquire.lua", time.Millisecond)
		}
		holds := make([]*rlock.Hold, 1000)
		var all sync.WaitGroup
		for i := range holds {
			all.Go(func() {
				lock := redlock.NewOn(name+strconv.Itoa(i), hasty, b.clients...)
				var err error
				holds[i], err = lock.TryLock(t.Context(), rlock.NoWait, longLease)
				assert.NoError(t, err)
			})
		}
		all.Wait()
		require.Greater(t, time.Since(b.start), hasty.NodeTimeout, "otherwise this proves nothing")
		for _, hold := range holds {
			unlock(t, hold)
		}
	})
}
