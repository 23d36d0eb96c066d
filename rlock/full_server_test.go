//go:build redis

package rlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// A server that has no connection left closes new ones before it greets. Nothing was sent then.
func TestFullServerIsTemporary(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	admin := s.Client(t, redistest.OneConnection)
	do := func(args ...string) {
		t.Helper()
		require.NoError(t, admin.Do(t.Context(), admin.B().Arbitrary(args...).Build()).Error())
	}
	c := newClient(t, s, rlock.Options{}, redistest.OneConnection)
	lock := c.NewLock("order")
	do("PING")
	do("CONFIG", "SET", "maxclients", "1")
	do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
	// The first command finds that its connection was closed, in any case.
	_, err := lock.TryLock(t.Context(), rlock.NoWait, time.Minute)
	require.Error(t, err)
	for what, call := range map[string]func() error{
		"TryLock": func() error {
			_, err := lock.TryLock(t.Context(), rlock.NoWait, time.Minute)
			return err
		},
		"Info": func() error {
			_, err := lock.Info(t.Context())
			return err
		},
		"ForceUnlock": func() error {
			_, err := lock.ForceUnlock(t.Context())
			return err
		},
	} {
		err := call()
		require.NotErrorIs(t, err, rlock.ErrOutcomeUnknown, what)
		require.NotErrorIs(t, err, rlock.ErrNotAcquired, what)
		var refusal *rlock.ServerError
		require.ErrorAs(t, err, &refusal, what)
		require.Contains(t, refusal.Advice, "maxclients", what)
	}
	waiter := lockInBackground(t.Context(), lock, time.Minute)
	do("CONFIG", "SET", "maxclients", "10000")
	unlock(t, acquired(t, waiter))
}
