package rlock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

func isNotHeld(err error) bool { return errors.Is(err, rlock.ErrNotHeld) }

func TestTryLockWithoutWaitReturnsAtOnce(t *testing.T) {
	s := redistest.Start(t)
	onEveryContest(t, func(t *testing.T, k kind) {
		client := newClient(t, s, rlock.Options{})
		hold := take(t, k.contender(client, k.name), 30*time.Second)

		before := s.Keys(t)
		start := time.Now()
		_, err := k.lock(client, k.name).TryLock(t.Context(), rlock.NoWait, rlock.Watchdog)
		took := time.Since(start)
		var held *rlock.HeldError
		require.ErrorAs(t, err, &held)
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
		require.Equal(t, k.name, held.Lock)
		require.Equal(t, hold.Owner(), held.Owner)
		require.InDelta(t, 30*time.Second, held.TTL, float64(10*time.Second))
		require.Less(t, took, promptly)
		require.Zero(t, k.listeners(s, k.name), "an attempt without wait does not listen")
		require.ElementsMatch(t, before, s.Keys(t), "and is not queued")
		unlock(t, hold)
	})
}

func TestTryLockOfAFreeLockDoesNotWait(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	onEveryKind(t, func(t *testing.T, k kind) {
		lock := k.lock(newClient(t, s, rlock.Options{}), k.name)
		within(t, longWait, func() {
			hold, err := lock.TryLock(t.Context(), time.Minute, rlock.Watchdog)
			require.NoError(t, err)
			unlock(t, hold)
		})
		require.Zero(t, k.listeners(s, k.name), "it need not listen")
	})
}
