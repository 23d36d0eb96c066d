//go:build interop

package redisson_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
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

// The lease of a thread ends without an unlock. Nobody can tell it from one that is not renewed, so
// it blocks writers for as long as the hash lasts: for what is left of a reader's lease in Go.
func readerOfRedissonWithoutLeaseBlocksWritersUntilTheHashEnds(t *testing.T, s *site) {
	for _, waits := range []side{goSide, javaSide} {
		t.Run(waits.name+" waits", func(t *testing.T) {
			t.Parallel()
			reading, writing := readWrite()
			reader, writer := goSide.newActor(t, s), waits.newActor(t, s)
			acquire(t, newJavaActor(t, s), reading, watchdogLease/4)
			acquire(t, reader, reading, rlock.Watchdog)
			locktest.Eventually(t, func() bool { return len(s.leaseKeys(t, reading.name())) == 1 },
				"Java's lease does not end")
			waiting := waitInBackground(writer, writing)
			s.waitForWaiters(t, writing, 1)
			start := time.Now()
			unlock(t, reader, reading)
			require.Less(t, acquired(t, waiting).Sub(start), watchdogLease+lag)
			unlock(t, writer, writing)
			s.requireFree(t, reading)
		})
	}
}
