package rlock_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/rlock"
)

// A server that keeps replying with 0 ms must not make the waiter spin.
func TestWaiterNeverParksForNothing(t *testing.T) {
	inBubbleOnEveryKind(t, rlock.Options{}, func(t *testing.T, b *bubble, k kind) {
		b.reply(k.acquire, func(args []string) any {
			if len(b.called(k.acquire)) > 10_000 { // time stands still for a waiter that spins
				return granted[k.acquire](args)
			}
			return heldFor(0)(args)
		})
		_, err := b.lock.TryLock(t.Context(), time.Second, rlock.Watchdog)
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
		require.LessOrEqual(t, len(b.called(k.acquire)), 15,
			"a lease that is over and does not end is looked at less and less often")
	})
}

func TestWaiterBacksOffWhileTheServerIsLoading(t *testing.T) {
	inBubbleOnEveryKind(t, rlock.Options{}, func(t *testing.T, b *bubble, k kind) {
		b.reply(k.acquire, func([]string) any { return errors.New("LOADING the dataset") })
		waiter := lockInBackground(t.Context(), b.lock, rlock.Watchdog)
		time.Sleep(time.Minute)
		synctest.Wait()
		tries := b.called(k.acquire)
		require.Less(t, len(tries), 2*60+10, "not much more than once a half second")
		for i := range tries[1:] {
			require.LessOrEqual(t, tries[i+1]-tries[i], time.Second)
		}
		b.reply(k.acquire, granted[k.acquire])
		unlock(t, acquired(t, waiter))
		require.LessOrEqual(t, time.Since(b.start), time.Minute+time.Second)
	})
}

func TestUnconfirmedPartialUnlockOfALockThatIsGoneSaysLost(t *testing.T) {
	inBubbleOnEveryKind(t, rlock.Options{}, func(t *testing.T, b *bubble, k kind) {
		outer := take(t, b.lock, time.Minute)
		inner := takeWith(outer.Context(), t, b.lock, time.Minute)
		b.reply(k.release, func([]string) any {
			if len(b.called(k.release)) == 1 {
				b.server.Disconnect()
			}
			return []any{-1, ""}
		})
		require.ErrorIs(t, inner.Unlock(t.Context()), rlock.ErrLost)
		require.Len(t, b.called(k.release), 2)
		require.ErrorIs(t, outer.Err(), rlock.ErrLost)
	})
}
