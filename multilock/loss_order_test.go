package multilock_test

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

// A force unlock ends what the owner has of a part level by level. It dallies here before it comes to that of all parts.
func TestExtendThatReturnsErrLostReturnsAfterTheHoldHasEnded(t *testing.T) {
	t.Parallel()
	p := startPair(t, rlock.Options{})
	for name, locks := range shapes(p) {
		t.Run(name, func(t *testing.T) {
			hold := take(t, of(locks), longLease)
			inner := takeWith(hold.Context(), t, locks[0], longLease)
			var seen atomic.Bool
			telling := make(chan struct{})
			hooks.Get[*rlock.Lock, *rlock.Hold]().OnEnd(inner, func(error) {
				close(telling)
				for begun := time.Now(); time.Since(begun) < promptly && !seen.Load(); {
					runtime.Gosched()
				}
			})
			forced := make(chan error, 1)
			go func() {
				_, err := locks[0].ForceUnlock(context.Background())
				forced <- err
			}()
			receive(t, telling, "the loss is not told")
			err := hold.Extend(t.Context(), longLease)
			ended, cause := hold.Err(), context.Cause(hold.Context())
			seen.Store(true)
			require.NoError(t, receive(t, forced, "it hangs"))
			require.ErrorIs(t, err, rlock.ErrLost)
			require.ErrorIs(t, ended, rlock.ErrLost)
			require.ErrorIs(t, cause, rlock.ErrLost)
			require.ErrorIs(t, hold.Unlock(t.Context()), rlock.ErrLost)
			awaitFree(t, p.first, p.second)
		})
	}
}
