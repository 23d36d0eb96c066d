package rlock_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/logtest"
	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// A writer that reads has two holds under one name, which may be released in any order.
func TestReleaseOnCloseReleasesTheReadAndTheWriteLock(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for range 10 {
		client := newClient(t, s, rlock.Options{ReleaseOnClose: true})
		pair, owner := client.NewReadWriteLock("lock"), rlock.WithOwner(t.Context())
		writing := takeWith(owner, t, pair.Write(), rlock.Watchdog)
		reading := takeWith(owner, t, pair.Read(), rlock.Watchdog)
		closeClient(t, client)
		require.ErrorIs(t, writing.Err(), rlock.ErrReleased)
		require.ErrorIs(t, reading.Err(), rlock.ErrReleased)
		requireFree(t, s, "lock")
	}
}

func TestReleaseOnCloseLogsWhatItCannotRelease(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	onEveryKind(t, func(t *testing.T, k kind) {
		logged := new(logtest.Lines)
		client := newClient(t, s, rlock.Options{ReleaseOnClose: true, Logger: logged.Logger()})
		hold := take(t, k.lock(client, k.name), rlock.Watchdog)
		s.Do(t, "SET", k.name, "not a lock")
		closeClient(t, client)
		require.Len(t, logged.With("not released on close"), 1)
		require.Contains(t, logged.With("not released on close")[0], hold.Owner())
	})
}
