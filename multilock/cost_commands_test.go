package multilock_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/multilock"
	"holdfast/rlock"
)

func TestPlainLocksOfOneClientAreTwoCommands(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{})
	lock := multilock.New(c.NewLock("c"), c.NewLock("a"), c.NewLock("b"))
	learn(t, lock)
	monitor := s.Monitor(t)
	for name, acquire := range map[string]func() (*rlock.Hold, error){
		"without wait":  func() (*rlock.Hold, error) { return lock.TryLock(t.Context(), rlock.NoWait, longLease) },
		"with wait":     func() (*rlock.Hold, error) { return lock.TryLock(t.Context(), patience, longLease) },
		"with watchdog": func() (*rlock.Hold, error) { return lock.Lock(t.Context(), rlock.Watchdog) },
		"short lease":   func() (*rlock.Hold, error) { return lock.TryLock(t.Context(), rlock.NoWait, 5*time.Second) },
	} {
		hold, err := acquire()
		require.NoError(t, err)
		require.Equal(t, 1, scriptCalls(t, monitor), name)
		require.ElementsMatch(t, []string{"a", "b", "c"}, left(t, s))
		monitor.Commands(t) // those of the line before
		unlock(t, hold)
		require.Equal(t, 1, scriptCalls(t, monitor), name)
		requireFree(t, s)
		monitor.Commands(t)
	}

	hold := take(t, lock, longLease)
	inner := takeWith(hold.Context(), t, lock, longLease)
	require.Equal(t, 2, scriptCalls(t, monitor), "a nested level is one more")
	require.NoError(t, lock.Unlock(hold.Context()))
	require.Equal(t, rlock.ErrReleased, inner.Err())
	require.NoError(t, lock.Unlock(hold.Context()))
	require.Equal(t, 2, scriptCalls(t, monitor))
	requireFree(t, s)
}

func TestPlainLocksAmongOthersAreTakenTogetherAsFarAsTheyFollowEachOther(t *testing.T) {
	t.Parallel()
	p := startPair(t, rlock.Options{})
	locks := []rlock.Locker{p.client.NewLock("a"), p.client.NewLock("b"), p.client.NewFairLock("c"), p.client.NewLock("d"),
		p.client.NewLock("e"), p.another.NewLock("a"), p.another.NewLock("b")}
	lock := multilock.New(locks...)
	learn(t, lock, locks...)
	first, second := p.first.Monitor(t), p.second.Monitor(t)
	hold := take(t, lock, longLease)
	require.Equal(t, 3, scriptCalls(t, first), "a and b, c, d and e")
	require.Equal(t, 1, scriptCalls(t, second))
	unlock(t, hold)
	require.Equal(t, 2, scriptCalls(t, first), "c, and all others: for releases there is no order")
	require.Equal(t, 1, scriptCalls(t, second))
	requireFree(t, p.first, p.second)
}

// Its lease is no measure for those of the others.
func TestLastPartThatTheOwnerHeldForLongerCostsNothingMore(t *testing.T) {
	t.Parallel()
	p := startPair(t, rlock.Options{})
	for name, locks := range shapes(p) {
		learn(t, of(locks), locks[0], locks[1], locks[2])
		outer := take(t, locks[2], longLease)
		first, second := p.first.Monitor(t), p.second.Monitor(t)
		hold := takeWith(outer.Context(), t, of(locks), 5*time.Minute)
		want := map[string]int{"together": 1, "one by one": 3}[name]
		require.Equal(t, want, scriptCalls(t, first)+scriptCalls(t, second), name)
		unlock(t, hold)
		unlock(t, outer)
		requireFree(t, p.first, p.second)
	}
}

// It was taken with as many commands as there are locks, and goes with as many.
func TestPlainLocksOfAClientThatWaitsForReplicasAreTakenOneByOne(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t, redistest.WithHostNetwork(), redistest.WithFastReplicas())
	redistest.StartReplica(t, master)
	c := newClient(t, master, rlock.Options{SyncReplicas: 1, SyncTimeout: patience})
	lock := multilock.New(c.NewLock("a"), c.NewLock("b"))
	learn(t, lock, c.NewLock("a"))
	monitor := master.Monitor(t)
	hold := take(t, lock, longLease)
	waits := 0
	for _, command := range monitor.Commands(t) {
		if command[0] == "wait" {
			waits++
		}
	}
	require.Equal(t, 2, waits)
	unlock(t, hold)
	requireFree(t, master)
}

func TestPlainLocksOfOneSlotOfAClusterAreTwoCommands(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3)
	c := newClientOn(t, cluster.Client(t), rlock.Options{})
	// Named so that their names alone would mix them.
	lock := multilock.New(c.NewLock("1{east}"), c.NewLock("2{west}"), c.NewLock("3{east}"),
		c.NewLock("4{west}"), c.NewLock("5{east}"))
	learn(t, lock, c.NewLock("1{east}"))
	monitors := make([]*redistest.Monitor, len(cluster.Nodes))
	for i, node := range cluster.Nodes {
		monitors[i] = node.Monitor(t)
	}
	calls := func() (n int) {
		for _, m := range monitors {
			for _, command := range m.Commands(t) {
				if command[0] == "evalsha" {
					n++
				}
			}
		}
		return n
	}
	calls()
	hold := take(t, lock, longLease)
	require.Equal(t, 2, calls(), "one for each slot")
	unlock(t, hold)
	require.Equal(t, 2, calls())
	requireFree(t, cluster.Nodes...)
}

func TestOnePartInTheWayIsWaitedForByItself(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, other := newClient(t, s, rlock.Options{}), newClient(t, s, rlock.Options{})
	lock := multilock.New(c.NewLock("a"), c.NewLock("b"), c.NewLock("c"))
	learn(t, lock, c.NewLock("a"))
	take(t, other.NewLock("b"), longLease)
	monitor := s.Monitor(t)
	waiter := lockInBackground(t.Context(), lock, rlock.Watchdog)
	awaitListener(t, s, "b")
	require.Equal(t, []string{"1"}, levels(t, s, "a"), "a is held meanwhile")
	require.False(t, exists(t, s, "c"), "c is free for others")
	unlock(t, take(t, other.NewLock("c"), longLease))
	forceUnlock(t, other.NewLock("b"))
	unlock(t, acquired(t, waiter))
	requireFree(t, s)

	// Commands of the waiter, by the keys that they are for. That parts which were taken a while ago are still held is confirmed
	// at the end; on a machine where all this takes a while.
	asked := make(map[string]int)
	confirm := script(t, "renew.lua")
	for _, command := range monitor.Commands(t) {
		if command[0] == "evalsha" && command[1] != confirm && contains(command, c.ID()) {
			keys, err := strconv.Atoi(command[2])
			require.NoError(t, err)
			asked[strings.Join(command[3:3+keys], " ")]++
		}
	}
	require.Equal(t, 2, asked["a b c"], "all together once, and their release")
	require.Equal(t, 1, asked["a"])
	require.Equal(t, 1, asked["b c"], "the rest together")
	require.Equal(t, 1, asked["b"], "the one that is waited for")
	require.GreaterOrEqual(t, asked["b holdfast_lock_waiters:{b}"], 1, "when it listens")
	require.LessOrEqual(t, asked["b holdfast_lock_waiters:{b}"], 2)
	require.Equal(t, 1, asked["c"])
}

// contains tells whether an argument is an owner of the client.
func contains(command []string, client string) bool {
	for _, argument := range command {
		if len(argument) > len(client) && argument[:len(client)+1] == client+":" {
			return true
		}
	}
	return false
}
