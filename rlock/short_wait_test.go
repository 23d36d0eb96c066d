package rlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/rlock"
)

// A waiter that becomes the head just before its time is over has no time for a reply of its own.
// That is no fault of the server's, and the queue knows the holder.
func TestWaiterCutOffInItsFirstTryNamesTheHolder(t *testing.T) {
	inBubbleOnEveryKind(t, rlock.Options{}, func(t *testing.T, b *bubble, k kind) {
		b.reply(k.acquire, func(args []string) any {
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
		// time for the head's reply; kinds without queue ask when they come
		replied := 10 * time.Millisecond
		if k.lonely {
			replied += 20 * time.Millisecond
		}
		require.Equal(t, 19*time.Second+replied, held.TTL.Round(time.Millisecond))
		require.ErrorIs(t, result(t, head).Err, rlock.ErrNotAcquired)
	})
}

// A request without reply may have acquired the lock, however short the time for a reply was. On a
// server that hangs the error must say so.
func TestWaiterWithoutAReplySaysSoHoweverShortItsTime(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		if k.lonely { // it asks when it comes
			continue
		}
		for left := time.Millisecond; left < 15*time.Millisecond; left += time.Millisecond {
			inBubble(t, rlock.Options{}, func(t *testing.T, b *bubble) {
				b.lock = k.lock(b.client, "lock")
				b.reply(k.acquire, heldFor(20_000))
				head := inBackground(func() (*rlock.Hold, error) {
					return b.lock.TryLock(t.Context(), time.Second, rlock.Watchdog)
				})
				time.Sleep(20 * time.Millisecond) // until it is at the head
				b.reply(k.acquire, func([]string) any { time.Sleep(2 * time.Second); return nil })
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				next := inBackground(
					func() (*rlock.Hold, error) { return b.lock.Lock(ctx, rlock.Watchdog) })
				require.ErrorIs(t, result(t, head).Err, rlock.ErrNotAcquired)
				time.Sleep(left)
				cancel()
				err := result(t, next).Err
				require.ErrorIs(t, err, context.Canceled)
				require.ErrorIs(t, err, rlock.ErrOutcomeUnknown, "%s, %v", k.name, left)
			})
		}
	}
}

// A waiter that becomes the head with no time left for a reply does not ask, unless a message says
// that it should.
func TestWaiterWithoutTimeForAReplyAsksNothing(t *testing.T) {
	for _, k := range kinds {
		if k.lonely {
			continue
		}
		inBubble(t, rlock.Options{}, func(t *testing.T, b *bubble) {
			b.lock = k.lock(b.client, "lock")
			b.reply(k.acquire, heldFor(20_000))
			head := inBackground(func() (*rlock.Hold, error) {
				return b.lock.TryLock(t.Context(), 991*time.Millisecond, rlock.Watchdog)
			})
			time.Sleep(20 * time.Millisecond) // until it is at the head
			asked := len(b.called(k.acquire))
			_, err := b.lock.TryLock(t.Context(), 980*time.Millisecond, rlock.Watchdog)
			require.ErrorIs(t, err, rlock.ErrNotAcquired)
			require.Len(t, b.called(k.acquire), asked, k.name)
			require.ErrorIs(t, result(t, head).Err, rlock.ErrNotAcquired)
		})
	}
}
