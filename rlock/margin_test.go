package rlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/rlock"
)

// The margin of a lease grows with it: without the release, others would wait 36 s for a lock that was given back.
func TestUnlockInTheMarginOfALongLeaseSaysLostAndStillReleases(t *testing.T) {
	inBubble(t, rlock.Options{}, func(t *testing.T, b *bubble) {
		hold := take(t, b.lock, time.Hour)
		time.Sleep(time.Until(hold.Deadline()) + time.Second)
		require.ErrorIs(t, hold.Err(), rlock.ErrLost)
		require.Empty(t, b.called("release.lua"), "nobody asked for it")
		require.ErrorIs(t, hold.Unlock(t.Context()), rlock.ErrLost)
		time.Sleep(time.Second)
		require.Len(t, b.called("release.lua"), 1)
	})
}

// After Close nobody watches the deadline but Unlock itself.
func TestUnlockReadsTheClockItself(t *testing.T) {
	inBubble(t, rlock.Options{}, func(t *testing.T, b *bubble) {
		hold := take(t, b.lock, 30*time.Second)
		closeClient(t, b.client)
		time.Sleep(time.Until(hold.Deadline()))
		require.ErrorIs(t, hold.Unlock(t.Context()), rlock.ErrLost)
	})
}
