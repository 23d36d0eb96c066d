//go:build redis

package rlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

func TestUnlockAfterExpiryIsNeverASuccess(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	withoutNesting(t, func(t *testing.T, k kind) {
		t.Parallel()
		lock := k.lock(newClient(t, s, rlock.Options{}), k.name)
		hold := take(t, lock, time.Second)
		receive(t, hold.Done(), "the hold did not end with its lease")
		require.ErrorIs(t, hold.Unlock(t.Context()), rlock.ErrLost)

		// Not even when another owner holds the lock by then, whose hold must not change.
		hold = take(t, afterExpiry(t, s, lock), time.Second)
		receive(t, hold.Done(), "the hold did not end with its lease")
		other := take(t, afterExpiry(t, s, lock), rlock.Watchdog)
		require.ErrorIs(t, hold.Unlock(t.Context()), rlock.ErrLost)
		require.Equal(t, k.hash(other.Owner(), 1), s.DoMap(t, "HGETALL", k.name))
		unlock(t, other)
		requireFree(t, s, k.name)
	})
}

// afterExpiry returns lock when its keys have expired on the server.
func afterExpiry(t *testing.T, s *redistest.Server, lock *rlock.Lock) *rlock.Lock {
	t.Helper()
	waitUntilFree(t, s, lock.Name())
	return lock
}
