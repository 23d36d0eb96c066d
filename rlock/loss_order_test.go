package rlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/hooks"
	"holdfast/rlock"
)

// Work under the inner level learns of the loss first, and may try again before the outer level has
// ended.
func TestOwnerThatLearnsOfALossAcquiresTheLockAnew(t *testing.T) {
	inBubbleOnEveryKind(t, rlock.Options{}, func(t *testing.T, b *bubble, _ kind) {
		owner := rlock.WithOwner(context.Background())
		outer := takeWith(owner, t, b.lock, time.Minute)
		inner := takeWith(owner, t, b.lock, time.Minute)
		for _, script := range []string{"reenter.lua", "read_reenter.lua"} {
			b.reply(script, func([]string) any { return 0 })
		}
		var again *rlock.Hold
		var err error
		hooks.Get[*rlock.Lock, *rlock.Hold]().OnEnd(inner, func(error) {
			again, err = b.lock.TryLock(owner, rlock.NoWait, time.Minute)
		})
		_, forced := b.lock.ForceUnlock(context.Background())
		require.NoError(t, forced)
		require.NoError(t, err)
		require.NotEqual(t, outer.Owner(), again.Owner())
		require.True(t, again.Valid())
		require.ErrorIs(t, outer.Unlock(context.Background()), rlock.ErrLost)
		unlock(t, again)
		require.ErrorIs(t, b.lock.Unlock(owner), rlock.ErrNotHeld)
	})
}
