package rlock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/rlock"
)

// stranger is an owner of a client of another process, and strangerKey says who that is.
const (
	stranger    = "0c4a1d1e-6f5a-4b7c-9c3f-5f3b0d9c2a11:7"
	strangerKey = "holdfast_client:{0c4a1d1e-6f5a-4b7c-9c3f-5f3b0d9c2a11}"
)

// asHeldError returns the HeldError in err.
func asHeldError(t testing.TB, err error) *rlock.HeldError {
	t.Helper()
	var held *rlock.HeldError
	require.ErrorAs(t, err, &held)
	return held
}

// lookUps counts the questions who others are. The answer is empty for those of unknown.
func (b *bubble) lookUps(unknown bool) (count func() int) {
	questions := make(chan string, 10_000)
	b.reply("identity.lua", func(args []string) any {
		questions <- args[0]
		if unknown {
			return []any{}
		}
		return []any{"host", "web-1", "pid", "4711"}
	})
	return func() int {
		synctest.Wait()
		return len(questions)
	}
}

func TestHolderIsLookedUpOnceByWaitersThatHaveWaitedForASecond(t *testing.T) {
	t.Parallel()
	onEach(t, contests(), func(t *testing.T, k kind) {
		inBubble(t, rlock.Options{}, func(t *testing.T, b *bubble) {
			count, lock := b.lookUps(false), k.lock(b.client, "lock")
			b.reply(k.acquire, heldFor(30_000))
			for _, wait := range []time.Duration{rlock.NoWait, 999 * time.Millisecond} {
				_, err := lock.TryLock(t.Context(), wait, longLease)
				require.ErrorIs(t, err, rlock.ErrNotAcquired)
			}
			time.Sleep(time.Minute)
			require.Zero(t, count())

			ctx, cancel := context.WithCancel(t.Context())
			var waiters []<-chan outcome
			for range 20 {
				waiters = append(waiters, lockInBackground(ctx, lock, longLease))
			}
			time.Sleep(time.Second)
			require.Equal(t, 1, count())
			time.Sleep(10 * time.Minute)
			require.Equal(t, 1, count())
			cancel()
			for _, waiter := range waiters {
				held := asHeldError(t, (<-waiter).Err)
				require.Equal(t, "web-1", held.Holder.Host)
				require.Contains(t, held.Error(), "another:7 (host web-1, pid 4711)")
			}

			sent := len(b.called(k.acquire))
			_, err := lock.TryLock(t.Context(), rlock.NoWait, longLease)
			require.Equal(t, "web-1", asHeldError(t, err).Holder.Host)
			require.Equal(t, 1, count())
			require.Len(t, b.called(k.acquire), sent+1, "what is known costs nothing")
		})
	})
}

func TestServerThatCannotSayWhoHoldsTheLockIsAskedAgainAfterALease(t *testing.T) {
	t.Parallel()
	inBubble(t, rlock.Options{WatchdogLease: 3 * time.Second}, func(t *testing.T, b *bubble) {
		asked := 0
		b.reply("identity.lua", func([]string) any {
			if asked++; asked == 1 {
				return errors.New("ERR not now")
			}
			return []any{"host", "web-1"}
		})
		b.reply("acquire.lua", heldFor(30_000))
		_, err := b.lock.TryLock(t.Context(), 20*time.Second, longLease)
		require.Equal(t, "web-1", asHeldError(t, err).Holder.Host)
	})
}
