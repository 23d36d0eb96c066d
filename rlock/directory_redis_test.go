//go:build redis

package rlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// introduce makes a stranger hold a plain lock for longLease, and tells the server who it is.
func introduce(t testing.TB, s *redistest.Server, lock string) {
	t.Helper()
	s.Do(t, "HSET", lock, stranger, "1")
	s.Do(t, "PEXPIRE", lock, "600000")
	s.Do(t, "HSET", strangerKey, "program", "billing", "host", "web-1", "pid", "4711", "start",
		"1700000000123", "label", "nightly")
}

func TestWaiterLearnsWhoHoldsTheLock(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	introduce(t, s, "order")
	lock := newClient(t, s, rlock.Options{}).NewLock("order")
	try := func(wait time.Duration) *rlock.HeldError {
		_, err := lock.TryLock(t.Context(), wait, longLease)
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
		return asHeldError(t, err)
	}
	for _, wait := range []time.Duration{rlock.NoWait, 500 * time.Millisecond} {
		held := try(wait)
		require.Zero(t, held.Holder)
		require.Contains(t, held.Error(), "held by "+stranger+" for another")
	}
	held := try(3 * time.Second)
	require.Equal(t, rlock.Identity{Program: "billing", Host: "web-1", PID: 4711,
		Start: time.UnixMilli(1700000000123), Label: "nightly"}, held.Holder)
	require.Contains(t, held.Error(),
		"held by "+stranger+" (host web-1, pid 4711, nightly) for another 9m")
	require.False(t, held.SameProcess)
	require.Equal(t, held.Holder, try(rlock.NoWait).Holder, "it is known from now on")
}
