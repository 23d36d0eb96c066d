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

func TestTurnThatCannotBeTrustedForLongIsGivenBack(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{})
	lock, owner := c.NewLock("order"), c.ID()+":1"
	for _, trusted := range []bool{true, false} {
		s.Do(t, "HSET", "order", owner, "1")
		until := time.Now().Add(time.Minute)
		if !trusted { // less than half of the lease of a waiter, which is 5 s
			until = time.Now().Add(2 * time.Second)
		}
		hold, err := rlock.TakeTurn(lock, owner, until)
		require.NoError(t, err)
		require.Equal(t, trusted, hold != nil)
		if trusted {
			require.Equal(t, owner, hold.Owner())
			unlock(t, hold)
		}
		waitUntilFree(t, s, "order")
	}
}

func TestTurnIsGivenBackAfterThisClientForcedALock(t *testing.T) {
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
		s.Do(t, "HSET", of.Name(), owner, "1")
		hold, err := rlock.TakeTurn(of, owner, time.Now().Add(time.Minute))
		require.NoError(t, err)
		require.Equal(t, of != lock, hold != nil)
	}
	waitUntilFree(t, s, "order")
	gate.open()
	require.NoError(t, receive(t, forced, "the release hangs"))
}
