package rlock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/rlock"
)

// The reply from before the server hung does not say who holds the lock when the wait ends.
func TestWaiterOfAServerThatBeganToHangSaysThatRedisDoesNotReply(t *testing.T) {
	inBubbleOnEveryKind(t, rlock.Options{}, func(t *testing.T, b *bubble, k kind) {
		b.reply(k.acquire, heldFor(1000))
		const wait = 3 * time.Second
		head := inBackground(func() (*rlock.Hold, error) {
			return b.lock.TryLock(t.Context(), wait, rlock.Watchdog)
		})
		synctest.Wait()
		behind := inBackground(func() (*rlock.Hold, error) {
			return b.lock.TryLock(t.Context(), wait-time.Millisecond, rlock.Watchdog)
		})
		synctest.Wait() // until it is in the queue
		b.server.Pause()

		err := result(t, behind).Err
		require.ErrorContains(t, err, "no reply from Redis")
		require.NotErrorIs(t, err, rlock.ErrNotAcquired)
		err = result(t, head).Err
		require.ErrorIs(t, err, rlock.ErrOutcomeUnknown)
		require.NotErrorIs(t, err, rlock.ErrNotAcquired)
		require.Equal(t, wait, time.Since(b.start))
	})
}

// A reply that is a moment late says nothing about the server.
func TestWaiterWhoseWaitEndsJustAfterItAskedNamesTheHolder(t *testing.T) {
	inBubbleOnEveryKind(t, rlock.Options{}, func(t *testing.T, b *bubble, k kind) {
		b.reply(k.acquire, func(args []string) any {
			time.Sleep(80 * time.Millisecond)
			return heldFor(500)(args)
		})
		_, err := b.lock.TryLock(t.Context(), 730*time.Millisecond, rlock.Watchdog)
		var held *rlock.HeldError
		require.ErrorAs(t, err, &held)
		require.Equal(t, "another:7", held.Owner)
	})
}
