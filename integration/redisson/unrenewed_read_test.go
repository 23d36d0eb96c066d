//go:build interop

package redisson_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/rlock"
)

// Some releases let leases of read locks end that they go on renewing otherwise. A reader that
// leaves must not free the lock, nor shorten it.
func readLocksThatJavaStopsRenewingStayHeld(t *testing.T, s *site) {
	for name, locks := range map[string]func() []target{
		"two locks": func() []target { return []target{both(read).hold, both(read).hold} },
		"taken twice": func() []target {
			l := both(read).hold
			return []target{l, l}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// A lock that was taken twice spoils the renewals of a client for good.
			s := s.with(t, s.java, watchdogLease)
			locks := locks()
			java, another := newJavaActor(t, s), goSide.newActor(t, s)
			l := locks[max(readsThatEnd(t, s, java, locks...), 0)]
			reads := count(t, java, l)
			writing := target{write, l.names}
			acquire(t, another, l, rlock.Watchdog)
			unlock(t, another, l)
			err := another.tryLock(writing, 2*watchdogLease, longLease)
			require.ErrorIs(t, err, errRefused, "a writer gets in while Java reads")
			require.Equal(t, reads, count(t, java, l))
			waiting := waitInBackground(another, writing)
			s.waitForWaiters(t, writing, 1)
			for _, l := range locks {
				for count(t, java, l) > 0 { // these releases may free all levels at once
					unlock(t, java, l)
				}
			}
			acquired(t, waiting)
			unlock(t, another, writing)
			s.requireFree(t, l)
		})
	}
}
