package rlock_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// names are lock names with the channel that Redisson derives from each, and whether key and
// channel share a slot.
var names = []struct {
	name, channel string
	oneSlot       bool
}{
	{"plain", "redisson_lock__channel:{plain}", true},
	{"order:42 ü", "redisson_lock__channel:{order:42 ü}", true},
	{"{tag}rest", "redisson_lock__channel:{tag}rest", true},
	{"before{tag}after", "redisson_lock__channel:before{tag}after", true},
	{"foo}bar", "redisson_lock__channel:{foo}bar}", false},
	{"a{b", "redisson_lock__channel:a{b", false},
	{"x{}y", "redisson_lock__channel:x{}y", false},
}

// requireName requires that a lock is kept on s under its very name, and its release announced on
// the given channel, which has a listener on one of the nodes.
func requireName(
	t *testing.T, s *redistest.Server, c *rlock.Client, name, channel string,
	nodes []*redistest.Server, numsub string,
) {
	t.Helper()
	lock := c.NewLock(name)
	hold := take(t, lock, time.Minute)
	require.Equal(t, map[string]string{hold.Owner(): "1"}, s.DoMap(t, "HGETALL", name))
	waiter := lockInBackground(t.Context(), lock, time.Minute)
	eventually(t, func() bool {
		return slices.ContainsFunc(nodes, func(node *redistest.Server) bool {
			reply, err := node.Call("PUBSUB", numsub, channel)
			return err == nil && reply.([]any)[1] == int64(1)
		})
	}, "nobody listens on "+channel)
	unlock(t, hold)
	unlock(t, acquired(t, waiter))
	require.Zero(t, s.DoInt(t, "EXISTS", name))
}

func TestEveryNameWorksOnASingleNode(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{})
	for _, n := range names {
		requireName(t, s, c, n.name, n.channel, []*redistest.Server{s}, "NUMSUB")
	}
}

// "order" and "{order}" are two locks, but Redisson's rule gives them one channel.
func TestWakeUpIsNotLostOnALockThatSharesTheChannel(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{})
	plain, tagged := c.NewLock("order"), c.NewLock("{order}")
	plainHold, taggedHold := take(t, plain, longLease), take(t, tagged, longLease)
	parkedWaiter(t, s, plain)
	second := registers(t, s, 1, tagged, rlock.Watchdog)
	start := time.Now()
	unlock(t, taggedHold)
	unlock(t, acquired(t, second))
	require.Less(t, time.Since(start), 3*time.Second, "it was woken only by the limit on sleeping")
	unlock(t, plainHold)
}

// A waiter for one of them must not be granted the other.
func TestLockIsNotGrantedToAWaiterForTheOneThatSharesTheChannel(t *testing.T) {
	t.Parallel()
	onEach(t, givenAway(), func(t *testing.T, k kind) {
		s := redistest.Start(t)
		plain, tagged := k.name, "{"+k.name+"}"
		holder := newClient(t, s, rlock.Options{})
		waiting := newClient(t, s, rlock.Options{})
		releasing := newClient(t, s, rlock.Options{})
		held := take(t, k.lock(holder, plain), longLease)
		waiter := registers(t, s, 1, k.lock(waiting, plain), longLease)
		unlock(t, take(t, k.lock(releasing, tagged), longLease))
		require.Empty(t, holderOf(t, s, tagged), "it was granted to a waiter")
		require.Equal(t, 1, registrations(s, plain))
		unlock(t, held)
		unlock(t, acquired(t, waiter))
	})
}

// A message is for one waiter, but does not say which of the two locks it is about.
func TestReleaseWakesTheWaiterForThisOneOfTwoThatShareTheChannel(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]rlock.HandOver{
		"announcing": rlock.HandOverNone, "local": rlock.HandOverLocal,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEach(t, passing(), func(t *testing.T, k kind) {
				s := redistest.Start(t)
				holder := newClient(t, s, rlock.Options{HandOver: mode})
				waiting := newClient(t, s, rlock.Options{HandOver: mode})
				names := []string{k.name, "{" + k.name + "}"}
				var holds []*rlock.Hold
				var waiters []<-chan outcome
				for _, name := range names {
					holds = append(holds, take(t, k.lock(holder, name), longLease))
					waiters = append(waiters,
						lockInBackground(t.Context(), k.lock(waiting, name), longLease))
					eventually(t, func() bool { return rlock.Refusals(k.lock(waiting, name)) >= 2 },
						"the look after it listens")
				}
				start := time.Now()
				for i := len(names) - 1; i >= 0; i-- {
					unlock(t, holds[i])
					unlock(t, acquired(t, waiters[i]))
				}
				require.Less(t, time.Since(start), 3*time.Second,
					"only the cap on sleeping woke it")
			})
		})
	}
}
