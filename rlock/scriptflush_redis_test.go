//go:build redis

package rlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

func TestScriptFlushBetweenOperationsIsNotNoticed(t *testing.T) {
	t.Parallel()
	onEveryKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		s := redistest.Start(t)
		c := newClient(t, s, rlock.Options{WatchdogLease: 6 * time.Second})
		flush := func() { s.Do(t, "SCRIPT", "FLUSH") }
		lock := k.lock(c, k.name)
		for range 2 {
			hold := take(t, lock, rlock.Watchdog)
			flush()
			inner := takeWith(hold.Context(), t, lock, rlock.Watchdog)
			flush()
			info, err := lock.Info(t.Context())
			require.NoError(t, err)
			require.Equal(t, 2, info.Count)
			flush()
			before := hold.Deadline()
			eventually(t, func() bool { return hold.Deadline().After(before) }, "not renewed")
			flush()
			unlock(t, inner)
			flush()
			unlock(t, hold)
			flush()
			take(t, lock, longLease)
			flush()
			held, err := lock.ForceUnlock(t.Context())
			require.NoError(t, err)
			require.True(t, held)
			flush()
		}
	})
}
