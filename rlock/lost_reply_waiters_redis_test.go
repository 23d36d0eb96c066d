//go:build redis

package rlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

func TestLostReplyOfADowngradeIsADowngrade(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]int{"twice": 2, "always": 1000} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			w, cut := writing(t, s, rlock.Options{CommandTimeout: time.Second})
			reading := takeWith(w.ctx, t, w.pair.Read(), longLease)
			parked := kindNamed("read").parked(t, s,
				newReadLock(newClient(t, s, rlock.Options{}), "order"))
			cut("write_release.lua", lost)
			err := w.hold.Unlock(t.Context())
			if lost > 100 {
				require.ErrorIs(t, err, rlock.ErrOutcomeUnknown)
			} else {
				require.NoError(t, err)
			}
			require.True(t, reading.Valid())
			require.NoError(t, reading.Err())

			// Now the others are readers, too.
			unlock(t, acquired(t, parked))
			require.Equal(t, w.hash("read", ""), counts(t, s))
			_, err = newWriteLock(newClient(t, s, rlock.Options{}),
				"order").TryLock(t.Context(), rlock.NoWait, time.Second)
			require.ErrorIs(t, err, rlock.ErrNotAcquired)
			unlock(t, reading)
			waitUntilFree(t, s, "order")
		})
	}
}
