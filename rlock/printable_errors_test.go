package rlock_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/logtest"
	"holdfast/internal/printable"
	"holdfast/internal/redistest"
	"holdfast/lua"
	"holdfast/rlock"
)

// evil moves the cursor of a terminal, reverses a line, and is long.
var evil = "\x1b[2J\u202e\n" + strings.Repeat("x", 1<<20)

// Whatever Redis has of a lock, anybody may have written it.
func TestErrorsAndLogsEscapeAndShortenWhatComesFromRedis(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	var log logtest.Lines
	c := newClient(t, s, rlock.Options{Logger: log.Logger()})
	own := take(t, c.NewLock("mine"), longLease)
	client, _, _ := strings.Cut(own.Owner(), ":")
	s.Do(t, "HSET", lua.ClientKey("stranger"), "host", evil, "label", evil, "pid", "1")
	for _, owner := range []string{"stranger:" + evil, client + ":" + evil} {
		for _, lock := range []rlock.Locker{c.NewLock("order"), c.NewFairLock("order"),
			c.NewReadWriteLock("order").Write()} {
			s.Do(t, "DEL", "order")
			s.Do(t, "HSET", "order", owner, "1")
			_, err := lock.TryLock(t.Context(), rlock.NoWait, longLease)
			require.ErrorIs(t, err, rlock.ErrNotAcquired)
			requirePrintable(t, err)
		}
	}
	identity, err := lua.ReadIdentity(t.Context(), s.Client(t), "stranger")
	require.NoError(t, err)
	require.Equal(t, printable.Text(identity.String()), identity.String())
	require.Less(t, len(identity.String()), 1000)

	s.Do(t, "DEL", "order")
	s.Do(t, "HSET", "order", evil, evil)
	_, err = c.NewLock("order").Info(t.Context())
	requirePrintable(t, err)
	unlock(t, own)
}

// requirePrintable asserts that a text may be shown to a person.
func requirePrintable(t *testing.T, err error) {
	t.Helper()
	require.Error(t, err)
	require.Equal(t, printable.Text(err.Error()), err.Error())
	require.Less(t, len(err.Error()), 1200)
}
