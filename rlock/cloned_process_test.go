package rlock_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// A virtual machine that is cloned with its memory has the same client twice, with the same count.
func TestCopyOfAProcessDoesNotTakeALockForItsOwn(t *testing.T) {
	t.Parallel()
	c := newClient(t, redistest.Start(t), rlock.Options{})
	onEveryKind(t, func(t *testing.T, k kind) {
		rlock.CountAgain(c)
		hold := take(t, k.contender(c, k.name), longLease)
		rlock.CountAgain(c)
		_, err := k.lock(c, k.name).TryLock(t.Context(), rlock.NoWait, longLease)
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
		unlock(t, hold)
	})
}
