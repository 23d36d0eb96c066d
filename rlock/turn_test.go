package rlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// The other promises about local turns are in internal/suite/turns.go.

// plant puts a lock of the owner into Redis, and returns a time until which it can be trusted.
func plant(t *testing.T, s *redistest.Server, lock, owner string) time.Time {
	t.Helper()
	s.Do(t, "HSET", lock, owner, "1")
	s.Do(t, "PEXPIRE", lock, "60000")
	return time.Now().Add(time.Minute)
}

func TestTurnIsTakenByACallerThatIsAboutToAskUnlessItsLeaseIsShort(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{})
	lock, owner := c.NewLock("order"), c.ID()+":1"
	for _, trusted := range []bool{true, false} {
		until := plant(t, s, "order", owner)
		if !trusted { // less than half of the lease of a waiter, which is 5 s
			until = time.Now().Add(2 * time.Second)
		}
		hold, err := rlock.GiveTurn(lock, owner, until, false)
		require.NoError(t, err)
		require.Equal(t, trusted, hold.Owner() == owner, "otherwise the caller asks by its own name")
		unlock(t, hold)
		waitUntilFree(t, s, "order")
	}
}

func TestTurnOfACallerThatLeavesIsGivenBack(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{})
	owner := c.ID() + ":1"
	_, err := rlock.GiveTurn(c.NewLock("order"), owner, plant(t, s, "order", owner), true)
	require.Error(t, err)
	waitUntilFree(t, s, "order")
}

func TestTurnIsGivenBackIfThisClientForcesTheLock(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	gate := keepReplies(s.Client(t), loaded(t, s, "force_unlock.lua"))
	c := newClientOn(t, gate, rlock.Options{})
	t.Cleanup(gate.open)
	lock, owner := c.NewLock("order"), c.ID()+":1"
	forced := make(chan error, 1)
	go func() {
		_, err := lock.ForceUnlock(context.Background())
		forced <- err
	}()
	receive(t, gate.kept, "nothing was forced")
	for _, of := range []*rlock.Lock{c.NewLock("another"), lock} {
		hold, err := rlock.GiveTurn(of, owner, plant(t, s, of.Name(), owner), false)
		require.NoError(t, err)
		require.Equal(t, of != lock, hold.Owner() == owner)
		unlock(t, hold)
		waitUntilFree(t, s, of.Name())
	}
	gate.open()
	require.NoError(t, receive(t, forced, "the release hangs"))
}
