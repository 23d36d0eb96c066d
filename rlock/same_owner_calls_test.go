package rlock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/hooks"
	"holdfast/rlock"
)

// These tests are about goroutines that share an owner while the server hangs: the others can only
// wait for what one of them has sent.

// An Unlock that gives up waiting for a nested Lock ends its own level while that adds another.
func TestLevelAddedWhileAnotherEndsIsRenewed(t *testing.T) {
	inBubble(t, rlock.Options{}, func(t *testing.T, b *bubble) {
		ctx := rlock.WithOwner(t.Context())
		outer := takeWith(ctx, t, b.lock, 20*time.Second)
		renewed := takeWith(ctx, t, b.lock, rlock.Watchdog)
		proceed := make(chan struct{})
		b.reply("reenter.lua", func([]string) any {
			<-proceed
			return 1
		})
		nested := lockInBackground(ctx, b.lock, rlock.Watchdog)
		synctest.Wait()
		var inner *rlock.Hold
		hooks.Get[*rlock.Lock, *rlock.Hold]().OnEnd(renewed, func(error) {
			close(proceed)
			inner = acquired(t, nested)
		})
		require.Error(t, renewed.Unlock(ctx)) // another call of the owner is under way
		time.Sleep(5 * time.Minute)
		require.NoError(t, inner.Err())
		unlock(t, inner)
		unlock(t, outer)
	})
}

// The reply to a nested Lock comes after the deadline that it would move, while the goroutine that
// reports the loss is busy with that of another lock.
func TestNestedLockWhoseReplyIsTooLateIsLost(t *testing.T) {
	inBubble(t, rlock.Options{CommandTimeout: time.Hour}, func(t *testing.T, b *bubble) {
		const lease = 5 * time.Second // rueidis waits for longer
		ctx := rlock.WithOwner(t.Context())
		busy := take(t, b.client.NewLock("busy"), time.Second)
		reporting := make(chan struct{})
		defer close(reporting)
		hooks.Get[*rlock.Lock, *rlock.Hold]().OnEnd(busy, func(error) { <-reporting })
		takeWith(ctx, t, b.lock, lease)
		b.reply("reenter.lua", func([]string) any {
			time.Sleep(lease)
			return 1
		})
		_, err := b.lock.Lock(ctx, lease)
		require.ErrorIs(t, err, rlock.ErrLost)
	})
}

func TestReleaseOnCloseReleasesALockThatGetsAnotherLevelMeanwhile(t *testing.T) {
	inBubble(t, rlock.Options{ReleaseOnClose: true}, func(t *testing.T, b *bubble) {
		ctx := rlock.WithOwner(t.Context())
		takeWith(ctx, t, b.lock, time.Minute)
		proceed := make(chan struct{})
		b.reply("reenter.lua", func([]string) any {
			<-proceed
			return 1
		})
		whole := make(chan bool, 1)
		b.reply("release.lua", func(args []string) any {
			whole <- args[2] != "1" // the count that release_only leaves
			return released(args)
		})
		nested := lockInBackground(ctx, b.lock, time.Minute)
		synctest.Wait()
		closed := make(chan error, 1)
		go func() { closed <- b.client.Close(t.Context()) }()
		synctest.Wait()
		close(proceed) // before the caller has noticed that the client closes
		require.True(t, <-whole)
		require.ErrorIs(t, result(t, nested).Err, rlock.ErrClosed)
		require.NoError(t, <-closed)
	})
}
