package rlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
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

func TestHolderOfThisProcessIsKnownAtOnce(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	holder := newClient(t, s, rlock.Options{Label: "nightly", Anonymous: true})
	take(t, holder.NewLock("order"), longLease)
	_, err := newClient(t, s, rlock.Options{}).NewLock("order").
		TryLock(t.Context(), rlock.NoWait, longLease)
	require.Equal(t, "nightly", asHeldError(t, err).Holder.Label)
	require.NotZero(t, asHeldError(t, err).Holder.PID)
	require.ErrorContains(t, err, "held by this very process (")
	require.NotContains(t, err.Error(), "nightly")
}

func TestWriterThatComesFirstIsNamedWithItsProcess(t *testing.T) {
	held := &rlock.HeldError{Owner: stranger, Next: true,
		Holder: rlock.Identity{Host: "web-1", PID: 4711}}
	require.ErrorContains(t, held, stranger+" (host web-1, pid 4711) waits for it and comes first")
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

func TestHolderOfSeveralLocksIsLookedUpOnceHoweverLateTheReply(t *testing.T) {
	t.Parallel()
	inBubble(t, rlock.Options{}, func(t *testing.T, b *bubble) {
		asked := make(chan struct{}, 100)
		b.reply("identity.lua", func([]string) any {
			asked <- struct{}{}
			time.Sleep(2 * time.Second)
			return []any{"host", "web-1"}
		})
		b.reply("acquire.lua", heldFor(30_000))
		var waiters []<-chan outcome
		for _, name := range []string{"a", "b", "c"} {
			waiters = append(waiters, inBackground(func() (*rlock.Hold, error) {
				return b.client.NewLock(name).TryLock(t.Context(), 10*time.Second, longLease)
			}))
			time.Sleep(200 * time.Millisecond)
		}
		for _, waiter := range waiters {
			require.Equal(t, "web-1", asHeldError(t, (<-waiter).Err).Holder.Host)
		}
		require.Len(t, asked, 1)
	})
}

func TestHolderThatIsUnknownIsLookedUpAgainAfterALease(t *testing.T) {
	t.Parallel()
	inBubble(t, rlock.Options{WatchdogLease: 30 * time.Second}, func(t *testing.T, b *bubble) {
		count := b.lookUps(true)
		b.reply("acquire.lua", heldFor(30_000))
		_, err := b.lock.TryLock(t.Context(), 30*time.Second, longLease)
		require.Zero(t, asHeldError(t, err).Holder)
		require.Equal(t, 1, count())
		_, err = b.lock.TryLock(t.Context(), 10*time.Minute, longLease)
		require.Zero(t, asHeldError(t, err).Holder)
		require.InDelta(t, 18, count(), 3, "every 30 s, or a little later")
	})
}

func TestHoldersThatChangeWithinASecondAreNotLookedUp(t *testing.T) {
	t.Parallel()
	inBubble(t, rlock.Options{}, func(t *testing.T, b *bubble) {
		count, n := b.lookUps(false), 0
		b.reply("acquire.lua", func(args []string) any {
			n++
			reply := heldFor(500)(args).([]any)
			reply[1] = strings.Repeat("x", n) + ":7"
			return reply
		})
		_, err := b.lock.TryLock(t.Context(), 10*time.Second, longLease)
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
		require.Zero(t, count())
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

func TestUserWhoMayNotSeeOthersLooksAgainAfterAMinute(t *testing.T) {
	t.Parallel()
	inBubble(t, rlock.Options{WatchdogLease: 3 * time.Second}, func(t *testing.T, b *bubble) {
		var asked []time.Duration
		b.reply("identity.lua", func([]string) any {
			if asked = append(asked, time.Since(b.start)); len(asked) == 1 {
				return errors.New("NOPERM this user has no permissions to access one of the keys")
			}
			return []any{"host", "web-1"}
		})
		b.reply("acquire.lua", heldFor(30_000))
		_, err := b.lock.TryLock(t.Context(), 2*time.Minute, longLease)
		require.Equal(t, "web-1", asHeldError(t, err).Holder.Host)
		require.Len(t, asked, 2)
		require.GreaterOrEqual(t, asked[1]-asked[0], time.Minute)
	})
}
