package rlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/rlock"
)

// The margin of a lease grows with it: without the release, others would wait 36 s for a lock that
// was unlocked.
func TestUnlockInTheMarginOfALongLeaseSaysLostAndStillReleases(t *testing.T) {
	t.Parallel()
	inBubbleOnEveryKind(t, rlock.Options{}, func(t *testing.T, b *bubble, k kind) {
		hold := take(t, b.lock, time.Hour)
		time.Sleep(time.Until(hold.Deadline()) + time.Second)
		require.ErrorIs(t, hold.Err(), rlock.ErrLost)
		require.Empty(t, b.called(k.release), "no call asked for it")
		require.ErrorIs(t, hold.Unlock(t.Context()), rlock.ErrLost)
		time.Sleep(time.Second)
		require.Len(t, b.called(k.release), 1)
	})
}

// After Close only Unlock itself checks the deadline.
func TestUnlockReadsTheClockItself(t *testing.T) {
	inBubbleOnEveryKind(t, rlock.Options{}, func(t *testing.T, b *bubble, _ kind) {
		hold := take(t, b.lock, 30*time.Second)
		closeClient(t, b.client)
		time.Sleep(time.Until(hold.Deadline()))
		require.ErrorIs(t, hold.Unlock(t.Context()), rlock.ErrLost)
	})
}
