//go:build redis

package rlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
	"holdfast/watchdog"
)

// The next renewal comes 18 to 20 s after the acquisition.
func TestLostConnectionMakesTheClientAskAtOnceWhetherItStillHoldsItsLocks(t *testing.T) {
	t.Parallel()
	for name, loses := range map[string]func(*testing.T, *redistest.Server, *rlock.Client){
		"that of a command": func(t *testing.T, s *redistest.Server, c *rlock.Client) {
			s.Restart(t)
			eventually(t, func() bool {
				_, err := c.NewLock("other").IsLocked(t.Context())
				return err == nil
			}, "no connection to the restarted server")
		},
		"that of a subscription": func(t *testing.T, s *redistest.Server, c *rlock.Client) {
			theirs := newClient(t, s, rlock.Options{})
			take(t, theirs.NewLock("other"), longLease)
			waiter := lockInBackground(t.Context(), c.NewLock("other"), longLease)
			waitForListeners(t, s, "other", 1)
			s.Restart(t)
			unlock(t, acquired(t, waiter))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			c := newClient(t, s, rlock.Options{WatchdogLease: time.Minute}, redistest.OneConnection)
			hold := take(t, c.NewLock("held"), rlock.Watchdog)
			began := time.Now()
			loses(t, s, c)
			<-hold.Done()
			require.ErrorIs(t, hold.Err(), watchdog.ErrGone)
			require.Less(t, time.Since(began), 15*time.Second, "only the next renewal noticed it")
		})
	}
}
