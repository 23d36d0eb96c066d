//go:build redis

package rlock_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// plantReader writes what a reader of another process would, with plain commands.
func plantReader(t testing.TB, s *redistest.Server, lock, owner string, lease time.Duration) {
	t.Helper()
	milliseconds := strconv.FormatInt(lease.Milliseconds(), 10)
	s.Do(t, "HSET", lock, "mode", "read", owner, "1")
	s.Do(t, "SET", readKey(lock, owner, 1), "1", "PX", milliseconds)
	s.Do(t, "PEXPIRE", lock, milliseconds)
}

func TestReaderThatDiedDelaysAWriterByItsOwnLeaseOnly(t *testing.T) {
	t.Parallel()
	const lease, watchdogLease = 1500 * time.Millisecond, 6 * time.Second
	for name, readers := range map[string]int{
		"alone": 0, "while live readers come, renew and go": 20,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			c := newClient(t, s,
				rlock.Options{WriterPreference: rlock.PreferNobody, WatchdogLease: watchdogLease})
			lock := c.NewReadWriteLock("page")
			died := time.Now()
			plantReader(t, s, "page", "dead:4611686018427387905", lease) // of this library
			var live *rlock.Hold
			if readers > 0 {
				live = take(t, lock.Read(), rlock.Watchdog)
			}
			writer := lockInBackground(t.Context(), lock.Write(), time.Minute)
			waitForParked(t, s, 1)
			for range readers {
				next := take(t, lock.Read(), rlock.Watchdog) // so that there is always one
				unlock(t, live)
				live = next
			}
			if live != nil {
				unlock(t, live)
			}
			o := result(t, writer)
			require.NoError(t, o.Err)
			require.GreaterOrEqual(t, o.At.Sub(died), lease)
			require.Less(t, o.At.Sub(died), lease+promptly)
			unlock(t, o.Hold)
		})
	}
}
