//go:build redis

package multilock_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/rlock"
	"holdfast/watchdog"
)

// losses are the ways to lose a part, each with what the error says about it.
var losses = map[string]struct {
	lease  time.Duration
	lose   func(t *testing.T, p *pair, part *rlock.Lock)
	reason string
}{
	"force-unlocked": {
		longLease,
		func(t *testing.T, _ *pair, part *rlock.Lock) { forceUnlock(t, part) },
		"force-unlocked",
	},
	"gone, which the watchdog finds out": {
		rlock.Watchdog,
		func(t *testing.T, p *pair, part *rlock.Lock) {
			p.first.Do(t, "DEL", part.Name())
		},
		watchdog.ErrGone.Error(),
	},
}

func TestHoldEndsWhenAPartIsLostAndSaysWhich(t *testing.T) {
	t.Parallel()
	p := startPair(t, rlock.Options{WatchdogLease: 3 * time.Second})
	for name, locks := range shapes(p) {
		for how, loss := range losses {
			for _, part := range locks[:2] {
				t.Run(name+", "+part.Name()+" "+how, func(t *testing.T) {
					hold := take(t, of(locks), loss.lease)
					ctx := hold.Context()
					loss.lose(t, p, part)
					receive(t, hold.Done(), "the hold goes on")
					err := hold.Err()
					require.ErrorIs(t, err, rlock.ErrLost)
					require.ErrorContains(t, err, `"a+b+c" lost`)
					require.Equal(t, 1, strings.Count(err.Error(), "holdfast:"), err)
					require.ErrorContains(t, err, `lock "`+part.Name()+`" lost: `+loss.reason)
					var lost *rlock.LostError
					require.ErrorAs(t, err, &lost)
					require.Equal(t, "a+b+c", lost.Lock)
					require.ErrorAs(t, lost.Reason, &lost)
					require.Equal(t, part.Name(), lost.Lock)
					receive(t, ctx.Done(), "the context goes on")
					require.Equal(t, err, context.Cause(ctx))
					require.False(t, hold.Valid())
					require.ErrorIs(t, hold.Extend(t.Context(), longLease), rlock.ErrLost)

					// The other parts stay held: nobody else may see work that is half done.
					for _, other := range locks {
						held, err := other.IsLocked(t.Context())
						require.NoError(t, err)
						require.Equal(t, other != part, held, other.Name())
					}
					err = hold.Unlock(t.Context())
					require.ErrorIs(t, err, rlock.ErrLost)
					require.ErrorContains(t, err, `lock "`+part.Name()+`" lost`)
					require.Equal(t, 1, strings.Count(err.Error(), "holdfast: "), err)
					require.ErrorIs(t, hold.Unlock(t.Context()), rlock.ErrNotHeld)
					requireFree(t, p.first, p.second)
				})
			}
		}
	}
}
