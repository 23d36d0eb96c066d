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

// A force unlock ends the owner's levels of a part one by one. Here it is held up before it comes
// to the level of the MultiLock.
func TestExtendThatReturnsErrLostReturnsAfterTheHoldHasEnded(t *testing.T) {
	t.Parallel()
	p := startPair(t, rlock.Options{})
	for name, locks := range shapes(p) {
		t.Run(name, func(t *testing.T) {
			hold := take(t, of(locks), longLease)
			inner := takeWith(hold.Context(), t, locks[0], longLease)
			var seen atomic.Bool
			reporting := make(chan struct{})
			hooks.Get[*rlock.Lock, *rlock.Hold]().OnEnd(inner, func(error) {
				close(reporting)
				for begun := time.Now(); time.Since(begun) < 500*time.Millisecond && !seen.Load(); {
					runtime.Gosched()
				}
			})
			forced := make(chan error, 1)
			go func() {
				_, err := locks[0].ForceUnlock(context.Background())
				forced <- err
			}()
			receive(t, reporting, "the loss is not reported")
			err := hold.Extend(t.Context(), longLease)
			ended, cause := hold.Err(), context.Cause(hold.Context())
			seen.Store(true)
			require.NoError(t, receive(t, forced, "ForceUnlock hangs"))
			require.ErrorIs(t, err, rlock.ErrLost)
			require.ErrorIs(t, ended, rlock.ErrLost)
			require.ErrorIs(t, cause, rlock.ErrLost)
			require.ErrorIs(t, hold.Unlock(t.Context()), rlock.ErrLost)
			waitUntilFree(t, p.first, p.second)
		})
	}
}
