package multilock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/rlock"
)

// The watchdog's next renewal would notice, but long after the acquisition.
func TestPartThatAnotherHoldsByTheEndFailsTheAcquisitionWithAWatchdog(t *testing.T) {
	t.Parallel()
	p := startPair(t, rlock.Options{})
	for name, locks := range shapes(p) {
		t.Run(name, func(t *testing.T) {
			theirs := take(t, p.client.NewFencedLock("b"), longLease)
			waiter := lockInBackground(t.Context(), of(locks), rlock.Watchdog)
			waitForWaiter(t, p.first)
			p.first.Do(t, "DEL", "a")
			other := take(t, p.client.NewLock("a"), longLease)
			<-time.After(150 * time.Millisecond) // a part acquired just now is not checked again
			unlock(t, theirs)
			o := result(t, waiter)
			require.ErrorIs(t, o.Err, rlock.ErrLost)
			require.ErrorContains(t, o.Err, `lock "a" lost`)
			var lost *rlock.LostError
			require.ErrorAs(t, o.Err, &lost)
			require.Equal(t, "a", lost.Lock)
			require.True(t, other.Valid())
			unlock(t, other)
			waitUntilFree(t, p.first, p.second)
		})
	}
}
