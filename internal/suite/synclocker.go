package suite

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/internal/logtest"
	"holdfast/rlock"
)

// Synclocker: every lock may be used where code knows only sync.Locker.
var synclocker = []Promise{
	{
		Name: "a sync.Locker excludes, though it has an owner",
		Kept: func(k Kind) bool { return !k.Shared },
		Test: func(t *testing.T, e *Env, k Kind) {
			owner := rlock.WithOwner(t.Context())
			locker := rlock.AsSyncLocker(owner, k.New(e.Party(t), "lock"), rlock.Watchdog)
			counter := 0 // the race detector and the sum show whether it is protected
			var working sync.WaitGroup
			for range 8 {
				working.Go(func() {
					for range 5 {
						locker.Lock()
						counter++
						locker.Unlock()
					}
				})
			}
			working.Wait()
			require.Equal(t, 40, counter)

			locker.Lock()
			locked := make(chan struct{})
			go func() {
				locker.Lock()
				close(locked)
			}()
			e.settle()
			select {
			case <-locked:
				require.Fail(t, "the second Lock has re-entered")
			default:
			}
			locker.Unlock()
			<-locked
			locker.Unlock()
			e.RequireNothingLeft(t)
		},
	},
	{
		Name: "a sync.Locker panics when it cannot lock, and when it is not locked",
		Test: func(t *testing.T, e *Env, k Kind) {
			lock, _ := e.held(t, k)
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			locker := rlock.AsSyncLocker(ctx, lock, rlock.Watchdog)
			require.Panics(t, locker.Lock)
			require.PanicsWithValue(t,
				`holdfast: Unlock of an unlocked sync.Locker for "`+lock.Name()+`"`, locker.Unlock)
		},
	},
	{
		Name: "a sync.Locker that has lost its lock logs that, and keeps the lock of the next",
		Kept: func(k Kind) bool { return !k.Shared },
		Test: func(t *testing.T, e *Env, k Kind) {
			logged := new(logtest.Lines)
			p := e.Party(t, func(o *rlock.Options) { o.Logger = logged.Logger() })
			locker := rlock.AsSyncLocker(t.Context(), k.New(p, "lock"), rlock.Watchdog)
			locker.Lock()
			e.settle() // until all masters have it
			for _, s := range e.Servers {
				s.Do(t, append([]string{"DEL"}, s.Keys(t)...)...)
			}
			locker.Lock()
			locker.Unlock() //nolint:staticcheck // it unlocks the first, which is lost
			locktest.Eventually(t, func() bool { return len(logged.With("lost")) > 0 }, "no log")
			_, err := k.New(e.Party(t), "lock").TryLock(t.Context(), rlock.NoWait, rlock.Watchdog)
			require.ErrorIs(t, err, rlock.ErrNotAcquired)
			locker.Unlock()
			e.RequireNothingLeft(t)
			require.Panics(t, locker.Unlock)
		},
	},
}
