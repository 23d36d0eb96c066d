package rlock_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/rlock"
)

// The arguments of fair_acquire.lua, after its five keys, that say how long a caller waits.
const (
	budgetArg = 5 + 10
	untilArg  = 5 + 11
)

func TestFairLockIsToldHowLongItsCallerWaits(t *testing.T) {
	inBubbleOnEveryKind(t, rlock.Options{}, func(t *testing.T, b *bubble, k kind) {
		if !k.lonely {
			return
		}
		var mu sync.Mutex
		var asked [][]string
		b.reply(k.acquire, func(args []string) any {
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, args)
			return heldFor(60_000)(args)
		})
		ctx, cancel := context.WithTimeout(t.Context(), 7*time.Second)
		defer cancel()
		ends := time.Now().Add(7 * time.Second)
		_, err := b.lock.TryLock(ctx, 10*time.Second, rlock.Watchdog)
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
		mu.Lock()
		require.Len(t, asked, 3, "at once, when it listens, and after 5 s")
		require.Equal(t, []string{"7000", "0"}, asked[0][budgetArg:],
			"the clock of the server is not known")
		require.Equal(t, "7000", asked[1][budgetArg])
		require.Equal(t, "2000", asked[2][budgetArg])
		for _, args := range asked[1:] {
			until, err := strconv.ParseInt(args[untilArg], 10, 64)
			require.NoError(t, err)
			require.InDelta(t, ends.UnixMilli(), until, 2)
		}
		mu.Unlock()

		for _, c := range []struct {
			name string
			lock func() error
		}{
			{"without a limit", func() error {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				time.AfterFunc(time.Second, cancel)
				_, err := b.lock.Lock(ctx, rlock.Watchdog)
				return err
			}},
			{"without a wait", func() error {
				_, err := b.lock.TryLock(t.Context(), rlock.NoWait, rlock.Watchdog)
				return err
			}},
		} {
			mu.Lock()
			asked = nil
			mu.Unlock()
			require.ErrorIs(t, c.lock(), rlock.ErrNotAcquired, c.name)
			mu.Lock()
			require.NotEmpty(t, asked)
			for _, args := range asked {
				require.Equal(t, []string{"0", "0"}, args[budgetArg:], c.name)
			}
			mu.Unlock()
		}
	})
}

func TestSimultaneousLeaversOfAFairLockCostFewCommands(t *testing.T) {
	t.Parallel()
	inBubbleOnEveryKind(t, rlock.Options{}, func(t *testing.T, b *bubble, k kind) {
		if !k.lonely {
			return
		}
		// A waiter takes two goroutines, and the kinds run in parallel: together they must stay far
		// below 8128 goroutines, at which the race detector ends the program.
		const waiters = 1200
		b.reply(k.acquire, heldFor(60_000))
		var mu sync.Mutex
		left := map[string]bool{}
		b.reply(k.release, func(args []string) any {
			time.Sleep(10 * time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			for _, owner := range args[5+6:] {
				left[owner] = true
			}
			return []any{-1, ""}
		})
		ctx, cancel := context.WithCancel(t.Context())
		var done []<-chan outcome
		for range waiters {
			done = append(done, lockInBackground(ctx, b.lock, rlock.Watchdog))
		}
		time.Sleep(time.Second)
		cancel()
		for _, d := range done {
			require.ErrorIs(t, result(t, d).Err, rlock.ErrNotAcquired)
		}
		time.Sleep(time.Second)
		mu.Lock()
		defer mu.Unlock()
		require.Len(t, left, waiters)
		require.LessOrEqual(t, len(b.called(k.release)), 4,
			"those who left first, and a thousand of the others each")
	})
}
