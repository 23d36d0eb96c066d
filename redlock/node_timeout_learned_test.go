package redlock_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

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
	clients := make([]*rlock.Client, len(b.nodes))
	for i, n := range b.nodes {
		clients[i] = n.client
	}
	return redlock.NewOn(name, redlock.Options{}, clients...)
}

// learn locks and unlocks so often that the round trips of all nodes that reply are known.
func (b *bubble) learn(t *testing.T) {
	t.Helper()
	for range 40 {
		hold := take(t, b.anew(), 10*time.Second)
		synctest.Wait()
		unlock(t, hold)
		synctest.Wait()
	}
}

func TestFreeLockIsAcquiredAtOnceHoweverFarTheNodesAre(t *testing.T) {
	t.Parallel()
	for _, roundTrip := range []time.Duration{
		100 * time.Microsecond, 30 * time.Millisecond, 80 * time.Millisecond, 200 * time.Millisecond,
	} {
		// The second is as long as the watchdog's lease. A renewal at the same time would delay a
		// release, because rueidis sends commands one by one until two come at a time.
		for _, lease := range []time.Duration{3 * time.Second, 30 * time.Second} {
			for _, hangs := range []string{"none hangs", "one hangs", "one hangs later"} {
				t.Run(fmt.Sprint(roundTrip, " ", lease, " ", hangs), func(t *testing.T) {
					inBubble(t, redlock.Options{}, func(t *testing.T, b *bubble) {
						for _, n := range b.nodes {
							n.away(roundTrip)
						}
						if hangs == "one hangs" {
							b.nodes[2].server.Pause()
						}
						for i := range 50 {
							if i == 25 && hangs == "one hangs later" {
								b.nodes[2].server.Pause()
							}
							start := time.Now()
							hold, err := b.anew().TryLock(t.Context(), rlock.NoWait, lease)
							require.NoError(t, err)
							require.Equal(t, roundTrip, time.Since(start))
							synctest.Wait() // for the other nodes, which reply at the same time
							require.NoError(t, hold.Extend(t.Context(), lease))
							require.Equal(t, 2*roundTrip, time.Since(start))
							synctest.Wait()
							unlock(t, hold)
							require.Equal(t, 3*roundTrip, time.Since(start))
							synctest.Wait()
						}
					})
				})
			}
		}
	}
}

// refusedAfter tries the lock, which must fail for want of a quorum after that time.
func (b *bubble) refusedAfter(t *testing.T, want, lease time.Duration) {
	t.Helper()
	start := time.Now()
	_, err := b.anew().TryLock(t.Context(), rlock.NoWait, lease)
	require.ErrorIs(t, err, redlock.ErrNoQuorum)
	require.Equal(t, want, time.Since(start))
}

func TestNodesThatHangAreWaitedForThreeOfTheirRoundTrips(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ roundTrip, lease, timeout time.Duration }{
		{100 * time.Microsecond, 3 * time.Second, 15 * time.Millisecond}, // lease/200
		{100 * time.Microsecond, rlock.Watchdog, 50 * time.Millisecond},
		{30 * time.Millisecond, 3 * time.Second, 90 * time.Millisecond},
		{80 * time.Millisecond, rlock.Watchdog, 240 * time.Millisecond},
		{200 * time.Millisecond, 3 * time.Second, 300 * time.Millisecond}, // a tenth of the lease
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
func TestSlowOrHungNodeDoesNotMakeTheTimeoutsOfTheOthersLong(t *testing.T) {
	for name, slow := range map[string]func(*bubbleNode){
		"slow":            func(n *bubbleNode) { n.away(200 * time.Millisecond) },
		"silent for ever": func(n *bubbleNode) { n.server.Pause() },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, redlock.Options{}, func(t *testing.T, b *bubble) {
				slow(b.nodes[4])
				b.learn(t)
				// less than it takes to find that a node that never replied hangs
				time.Sleep(200 * time.Millisecond)
				for _, n := range b.nodes[:3] {
					n.server.Pause()
				}
				b.refusedAfter(t, 50*time.Millisecond, 10*time.Second)
				b.nodes[4].away(0) // up to 80 commands are still queued there, and Close waits
			})
		})
	}
}

// As when a route changes.
func TestLateRepliesTeachThatTheNodesAreFarNow(t *testing.T) {
	t.Parallel()
	for _, roundTrip := range []time.Duration{80 * time.Millisecond, 200 * time.Millisecond} {
		inBubble(t, redlock.Options{}, func(t *testing.T, b *bubble) {
			b.learn(t)
			for _, n := range b.nodes {
				n.away(roundTrip)
			}
			b.refusedAfter(t, 50*time.Millisecond, 10*time.Second)
			start := time.Now()
			hold, err := b.anew().TryLock(t.Context(), 10*time.Second, 10*time.Second)
			require.NoError(t, err)
			require.Less(t, time.Since(start), 20*roundTrip, "%v", roundTrip)
			unlock(t, hold)
			time.Sleep(time.Second)
			b.learn(t)
			start = time.Now()
			unlock(t, take(t, b.anew(), 10*time.Second))
			require.Equal(t, 2*roundTrip, time.Since(start))
		})
	}
}
