package rlock_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/hooks"
	"holdfast/rlock"
)

// A force unlock, or the watchdog, ends the levels on its own goroutine. Here it is held up between
// the inner one and the outer one.
func TestCallThatReturnsErrLostReturnsAfterTheHoldHasEnded(t *testing.T) {
	for name, call := range map[string]func(b *bubble, outer *rlock.Hold) error{
		"Extend": func(_ *bubble, outer *rlock.Hold) error {
			return outer.Extend(context.Background(), time.Minute)
		},
		"Unlock": func(_ *bubble, outer *rlock.Hold) error { return outer.Unlock(context.Background()) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubbleOnEveryKind(t, rlock.Options{}, func(t *testing.T, b *bubble, _ kind) {
				outer := take(t, b.lock, time.Minute)
				inner := takeWith(outer.Context(), t, b.lock, time.Minute)
				var seen atomic.Bool
				telling := make(chan struct{})
				hooks.Get[*rlock.Lock, *rlock.Hold]().OnEnd(inner, func(error) {
					close(telling)
					for i := 0; i < 10_000 && !seen.Load(); i++ {
						runtime.Gosched() // lets all others run that do not wait for this
					}
				})
				forced := make(chan error, 1)
				go func() {
					_, err := b.lock.ForceUnlock(context.Background())
					forced <- err
				}()
				<-telling
				err := call(b, outer)
				ended, cause := outer.Err(), context.Cause(outer.Context())
				seen.Store(true)
				require.NoError(t, <-forced)
				require.ErrorIs(t, err, rlock.ErrLost)
				require.ErrorIs(t, ended, rlock.ErrLost)
				require.ErrorIs(t, cause, rlock.ErrLost)
			})
		})
	}
}

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
