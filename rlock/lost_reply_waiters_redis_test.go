//go:build redis

package rlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// A registration outlasts the wait of its owner, and so do the attempts to remove it.
func TestWaiterLeavesTheQueueWhenTheServerCanBeReachedAgain(t *testing.T) {
	t.Parallel()
	const wait = 500 * time.Millisecond
	s := redistest.Start(t)
	other := newClient(t, s, rlock.Options{})
	c, p := proxied(t, s, rlock.Options{})
	hold := take(t, other.NewFairLock("fair"), longLease)
	reading := take(t, newReadLock(other, "read"), longLease)
	attempts := []<-chan outcome{}
	for _, lock := range []*rlock.Lock{c.NewFairLock("fair"), newWriteLock(c, "read")} {
		attempts = append(
			attempts,
			inBackground(
				func() (*rlock.Hold, error) { return lock.TryLock(t.Context(), wait, wait/2) }),
		)
	}
	keys := []string{"redisson_lock_queue:{fair}", "holdfast_rwlock_writer:{read}"}
	for _, key := range keys {
		eventually(t, func() bool { return exists(s, key) }, "nobody waits")
	}
	p.Refuse()
	p.Reset()
	for _, attempt := range attempts {
		require.Error(t, result(t, attempt).Err)
	}
	<-time.After(wait + 100*time.Millisecond)
	for _, key := range keys {
		require.True(t, exists(s, key))
	}
	require.NoError(t, p.Accept())
	start := time.Now()
	for _, key := range keys {
		eventually(t, func() bool { return absent(s, key) }, key+" is left")
	}
	require.Less(t, time.Since(start), beforeItLapses)
	unlock(t, hold)
	unlock(t, reading)
}

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
