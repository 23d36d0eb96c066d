//go:build !race

package rlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// These tests bound the commands of operations, as a gate against regressions that needs no clock.
// The race detector would only slow down their crowds.

func TestCommandsOfEachOperation(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for _, k := range kinds {
		c, other := newClient(t, s, rlock.Options{}), newClient(t, s, rlock.Options{})
		k.warm(t, c, k.name)
		unlock(t, take(t, k.contender(other, k.name), time.Minute))
		lock, monitor := k.lock(c, k.name), s.Monitor(t)
		_, err := lock.ForceUnlock(t.Context())
		require.NoError(t, err)
		_, err = lock.Info(t.Context())
		require.NoError(t, err)
		monitor.Commands(t)
		costs := func(operation string, want int) {
			t.Helper()
			commands := monitor.Commands(t)
			require.Len(t, commands, want, "%s of a %s lock: %v", operation, k.name, commands)
			for _, command := range commands {
				require.Equal(t, "evalsha", command[0])
			}
		}

		hold := acquired(t, lockInBackground(context.Background(), lock, rlock.Watchdog))
		costs("Lock", 1)
		unlock(t, hold)
		costs("Unlock", 1)
		hold, err = lock.TryLock(t.Context(), time.Minute, time.Minute)
		require.NoError(t, err)
		costs("TryLock", 1)
		nested := takeWith(hold.Context(), t, lock, time.Minute)
		costs("nested TryLock", 1)
		unlock(t, nested)
		costs("nested Unlock", 1)
		require.NoError(t, hold.Extend(t.Context(), 2*time.Minute))
		costs("Extend", 1)
		_, err = lock.Info(t.Context())
		require.NoError(t, err)
		costs("Info", 1)
		unlock(t, hold)
		costs("Unlock", 1)

		contender := take(t, k.contender(other, k.name), time.Minute)
		costs("TryLock without wait", 1)
		_, err = lock.TryLock(t.Context(), rlock.NoWait, time.Minute)
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
		costs("TryLock that is refused", 1)
		unlock(t, contender)
		costs("Unlock", 1)
	}
}
