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
		"without wait": func() (*rlock.Hold, error) {
			return lock.TryLock(t.Context(), rlock.NoWait, longLease)
		},
		"with wait": func() (*rlock.Hold, error) {
			return lock.TryLock(t.Context(), longWait, longLease)
		},
		"with watchdog": func() (*rlock.Hold, error) { return lock.Lock(t.Context(), rlock.Watchdog) },
		"short lease": func() (*rlock.Hold, error) {
			return lock.TryLock(t.Context(), rlock.NoWait, 5*time.Second)
		},
	} {
		hold, err := acquire()
		require.NoError(t, err)
		require.Equal(t, 1, scriptCalls(t, monitor), name)
		require.ElementsMatch(t, []string{"a", "b", "c"}, left(t, s))
		monitor.Commands(t) // drops those of left
		unlock(t, hold)
		require.Equal(t, 1, scriptCalls(t, monitor), name)
		requireFree(t, s)
		monitor.Commands(t)
	}

	hold := take(t, lock, longLease)
	inner := takeWith(hold.Context(), t, lock, longLease)
	require.Equal(t, 2, scriptCalls(t, monitor), "a nested level is one more command")
	require.NoError(t, lock.Unlock(hold.Context()))
	require.Equal(t, rlock.ErrReleased, inner.Err())
	require.NoError(t, lock.Unlock(hold.Context()))
	require.Equal(t, 2, scriptCalls(t, monitor))
	requireFree(t, s)
}

func TestNeighbouringPlainLocksAreABatch(t *testing.T) {
	t.Parallel()
	p := startPair(t, rlock.Options{})
	locks := []rlock.Locker{
		p.client.NewLock("a"), p.client.NewLock("b"), p.client.NewFairLock("c"),
		p.client.NewLock("d"), p.client.NewLock("e"), p.another.NewLock("a"),
		p.another.NewLock("b"),
	}
	lock := multilock.New(locks...)
	learn(t, lock, locks...)
	first, second := p.first.Monitor(t), p.second.Monitor(t)
	hold := take(t, lock, longLease)
	require.Equal(t, 3, scriptCalls(t, first), "a and b, c, d and e")
	require.Equal(t, 1, scriptCalls(t, second))
	unlock(t, hold)
	require.Equal(t, 2, scriptCalls(t, first), "c, and a batch of all others")
	require.Equal(t, 1, scriptCalls(t, second))
	requireFree(t, p.first, p.second)
}

// The last part's longer lease is no reason to renew the others.
func TestLastPartThatTheOwnerHeldForLongerCostsNoCommand(t *testing.T) {
	t.Parallel()
	p := startPair(t, rlock.Options{})
	for name, locks := range shapes(p) {
		learn(t, of(locks), locks[0], locks[1], locks[2])
		outer := take(t, locks[2], longLease)
		first, second := p.first.Monitor(t), p.second.Monitor(t)
		hold := takeWith(outer.Context(), t, of(locks), 5*time.Minute)
		want := map[string]int{"batch": 1, "one by one": 3}[name]
		require.Equal(t, want, scriptCalls(t, first)+scriptCalls(t, second), name)
		unlock(t, hold)
		unlock(t, outer)
		requireFree(t, p.first, p.second)
	}
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
	waitForListener(t, s, "b")
	require.Equal(t, []string{"1"}, levels(t, s, "a"), "a is held meanwhile")
	require.False(t, exists(t, s, "c"), "c is free for others")
	unlock(t, take(t, other.NewLock("c"), longLease))
	forceUnlock(t, other.NewLock("b"))
	unlock(t, acquired(t, waiter))
	requireFree(t, s)

	// Count the waiter's commands by their keys. A renewal that confirms the parts acquired a while
	// ago may come at the end, if all this takes a while on a slow machine.
	asked := make(map[string]int)
	confirm := script(t, "renew.lua")
	for _, command := range monitor.Commands(t) {
		if command[0] == "evalsha" && command[1] != confirm && contains(command, c.ID()) {
			keys, err := strconv.Atoi(command[2])
			require.NoError(t, err)
			asked[strings.Join(command[3:3+keys], " ")]++
		}
	}
	require.Equal(t, 2, asked["a b c"], "acquired as a batch once, and released as one")
	require.Equal(t, 1, asked["a"])
	require.Equal(t, 1, asked["b c"], "the rest as a batch")
	require.Equal(t, 1, asked["b"], "the one that is waited for")
	require.GreaterOrEqual(t, asked["b holdfast_lock_waiters:{b}"], 1, "when it listens")
	require.LessOrEqual(t, asked["b holdfast_lock_waiters:{b}"], 2)
	require.Equal(t, 1, asked["c"])
}

// contains reports whether an argument is an owner of the client.
func contains(command []string, client string) bool {
	for _, argument := range command {
		if len(argument) > len(client) && argument[:len(client)+1] == client+":" {
			return true
		}
	}
	return false
}
