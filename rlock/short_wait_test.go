package rlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/rlock"
)

// A waiter that gets to the head of its line just before its time is over has no time for an answer of its own. That is
// no fault of the server's, and the line knows who has the lock.
func TestWaiterCutOffInItsFirstTryHearsWhoHasTheLock(t *testing.T) {
	inBubbleOnEveryKind(t, rlock.Options{}, func(t *testing.T, b *bubble, k kind) {
		b.answer(k.acquire, func(args []string) any {
			time.Sleep(5 * time.Millisecond)
			return heldFor(20_000)(args)
		})
		head := inBackground(func() (*rlock.Hold, error) {
			return b.lock.TryLock(t.Context(), 997*time.Millisecond, rlock.Watchdog)
		})
		time.Sleep(20 * time.Millisecond) // until it is at the head
		_, err := b.lock.TryLock(t.Context(), 980*time.Millisecond, rlock.Watchdog)
		require.Equal(t, time.Second, time.Since(b.start))
		require.NotErrorIs(t, err, rlock.ErrOutcomeUnknown)
		var held *rlock.HeldError
		require.ErrorAs(t, err, &held)
		require.Equal(t, "another:7", held.Owner)
		answered := 10 * time.Millisecond // the line; who has none asks when it comes
		if k.lonely {
			answered += 20 * time.Millisecond
		}
		require.Equal(t, 19*time.Second+answered, held.TTL.Round(time.Millisecond))
		require.ErrorIs(t, result(t, head).Err, rlock.ErrNotAcquired)
	})
}
