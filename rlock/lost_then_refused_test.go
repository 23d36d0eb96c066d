package rlock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/rlock"
)

// The server executes a command, loses its connections, and refuses what is sent to it afterwards,
// as one does that was restarted. Then the refusal is not all that there is to say.
func TestOutcomeStaysUnknownWhileTheServerRefusesToTell(t *testing.T) {
	t.Parallel()
	loading := func([]string) any {
		return errors.New("LOADING Redis is loading the dataset in memory")
	}
	lose := func(b *bubble, script string, next func([]string) any) {
		b.reply(script, func([]string) any {
			b.reply(script, next)
			b.server.Disconnect()
			return nil
		})
	}
	requireUnknown := func(t *testing.T, err error) {
		t.Helper()
		require.ErrorIs(t, err, rlock.ErrOutcomeUnknown)
		require.NotErrorIs(t, err, rlock.ErrNotAcquired)
		require.ErrorContains(t, err, "LOADING")
	}
	t.Run("a new lock", func(t *testing.T) {
		inBubbleOnEveryKind(t, rlock.Options{}, func(t *testing.T, b *bubble, k kind) {
			lose(b, k.acquire, loading)
			_, err := b.lock.TryLock(t.Context(), 3*time.Second, time.Minute)
			requireUnknown(t, err)
			require.Greater(t, len(b.called(k.acquire)), 3, "the first try said it")
			b.reply(k.acquire, granted[k.acquire])
		})
	})
	t.Run("a reply later than the lease", func(t *testing.T) {
		inBubbleOnEveryKind(t, rlock.Options{}, func(t *testing.T, b *bubble, k kind) {
			b.reply(k.acquire, func(args []string) any {
				b.reply(k.acquire, loading)
				time.Sleep(2 * time.Second)
				return granted[k.acquire](args)
			})
			_, err := b.lock.TryLock(t.Context(), 4*time.Second, time.Second)
			requireUnknown(t, err)
		})
	})
	t.Run("one more level", func(t *testing.T) {
		inBubble(t, rlock.Options{}, func(t *testing.T, b *bubble) {
			hold := take(t, b.lock, time.Minute)
			lose(b, "reenter.lua", loading)
			_, err := b.lock.TryLock(hold.Context(), 3*time.Second, time.Minute)
			requireUnknown(t, err)
			unlock(t, hold)
		})
	})
	t.Run("and another holds it by then", func(t *testing.T) {
		inBubbleOnEveryKind(t, rlock.Options{}, func(t *testing.T, b *bubble, k kind) {
			lose(b, k.acquire, func(args []string) any {
				b.reply(k.acquire, func(args []string) any {
					b.reply(k.acquire, loading)
					return heldFor(500)(args)
				})
				return loading(args)
			})
			_, err := b.lock.TryLock(t.Context(), 3*time.Second, time.Minute)
			require.ErrorContains(t, err, "LOADING")
			require.NotErrorIs(t, err, rlock.ErrOutcomeUnknown)
		})
	})
}
