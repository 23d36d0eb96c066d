package suite

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/rlock"
)

// Arguments: what can never work is rejected at once, and nothing is sent.
var arguments = []Promise{
	{
		Name: "an impossible wait or lease is rejected with advice, and nothing is sent",
		Test: func(t *testing.T, e *Env, k Kind) {
			lock, before := k.New(e.Party(t, anonymous), "lock"), e.scripts(t)
			for _, c := range []struct {
				wait   time.Duration
				lease  rlock.Lease
				advice string
			}{
				{0, rlock.Lease(time.Millisecond - 1), "at least 3ms"},
				{0, rlock.Lease(2 * time.Millisecond), "at least 3ms"},
				{0, 0, "rlock.Watchdog to renew the lock until its release"},
				{-time.Second, rlock.Lease(time.Second), "use rlock.NoWait, a duration, or rlock.Forever"},
			} {
				_, err := lock.TryLock(t.Context(), c.wait, c.lease)
				assert.ErrorIs(t, err, rlock.ErrInvalid, c)
				assert.NotErrorIs(t, err, rlock.ErrNotAcquired)
				requireOnePrefix(t, err)
				assert.ErrorContains(t, err, c.advice)
				if c.wait == 0 {
					_, err = lock.Lock(t.Context(), c.lease)
					assert.ErrorIs(t, err, rlock.ErrInvalid, c)
				}
			}
			require.Equal(t, before, e.scripts(t))
			_, err := lock.TryLock(t.Context(), rlock.NoWait, rlock.Lease(3*time.Millisecond))
			require.NotErrorIs(t, err, rlock.ErrInvalid, "the shortest lease")
		},
	},
	{
		Name: "an empty name is rejected by every method, and nothing is sent",
		Kept: func(k Kind) bool { return k.Name != "multilock" },
		Test: func(t *testing.T, e *Env, k Kind) {
			nameless, before := k.New(e.Party(t, anonymous), ""), e.scripts(t)
			_, lockErr := nameless.Lock(t.Context(), rlock.Watchdog)
			_, tryErr := nameless.TryLock(t.Context(), time.Second, rlock.Watchdog)
			errs := []error{lockErr, tryErr}
			if lock, ok := nameless.(*rlock.Lock); ok {
				_, infoErr := lock.Info(t.Context())
				_, countErr := lock.HoldCount(t.Context())
				_, forceErr := lock.ForceUnlock(t.Context())
				errs = append(errs, infoErr, countErr, forceErr)
			}
			for _, err := range errs {
				require.ErrorIs(t, err, rlock.ErrInvalid)
				requireOnePrefix(t, err)
			}
			require.Equal(t, before, e.scripts(t))
		},
	},
	{
		Name: "a context that has ended sends nothing, and the error has its cause",
		Test: func(t *testing.T, e *Env, k Kind) {
			locker := k.New(e.Party(t, anonymous), "lock")
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(errWork)
			before := e.scripts(t)
			_, lockErr := locker.Lock(ctx, rlock.Watchdog)
			_, tryErr := locker.TryLock(ctx, rlock.NoWait, rlock.Watchdog)
			errs := []error{lockErr, tryErr}
			for _, err := range errs {
				require.ErrorIs(t, err, rlock.ErrNotAcquired)
			}
			if lock, ok := locker.(*rlock.Lock); ok {
				_, infoErr := lock.Info(ctx)
				_, forceErr := lock.ForceUnlock(ctx)
				errs = append(errs, infoErr, forceErr)
			}
			for _, err := range errs {
				require.ErrorIs(t, err, context.Canceled)
				require.ErrorIs(t, err, errWork)
				requireOnePrefix(t, err)
			}
			require.Equal(t, before, e.scripts(t))
		},
	},
	{
		Name: "the context of a hold that has ended is rejected, and the error says why it ended",
		Test: func(t *testing.T, e *Env, k Kind) {
			p, closing := e.Party(t, anonymous), e.Party(t, anonymous)
			released := locktest.Acquire(t, k.New(p, "released"), rlock.Watchdog)
			locktest.Unlock(t, released)
			forced := locktest.Acquire(t, p.Client.NewLock("forced"), rlock.Watchdog)
			_, err := p.Client.NewLock("forced").ForceUnlock(t.Context())
			require.NoError(t, err)
			closed := locktest.Acquire(t, k.New(closing, "closed"), rlock.Watchdog)
			for _, c := range closing.Clients {
				locktest.CloseClient(t, c)
			}
			e.settle() // Unlock of a RedLock does not wait for all nodes
			before := e.scripts(t)
			for text, hold := range map[string]*rlock.Hold{
				"ctx belongs to a released hold; pass a context that outlasts the hold": released,
				"ctx belongs to a lost hold":               forced,
				"ctx belongs to a hold of a closed client": closed,
			} {
				for _, name := range []string{"order", "released"} {
					_, err := k.New(p, name).Lock(hold.Context(), rlock.Watchdog)
					require.ErrorIs(t, err, rlock.ErrNotAcquired)
					require.ErrorIs(t, err, context.Canceled)
					require.ErrorIs(t, err, hold.Err())
					requireOnePrefix(t, err)
					if ofOneClient(k) {
						require.ErrorContains(t, err, text)
						require.ErrorContains(t, err, `holdfast: lock "`+name+`": `)
					}
				}
			}
			require.Equal(t, before, e.scripts(t))
		},
	},
	{
		Name: "a nil context panics, and leaves the client able to close",
		Test: func(t *testing.T, e *Env, k Kind) {
			p := e.Party(t)
			hold := locktest.Acquire(t, k.New(p, "lock"), rlock.Watchdog)
			var none context.Context
			require.Panics(t, func() { _, _ = k.New(p, "other").Lock(none, rlock.Watchdog) })
			require.Panics(t, func() { _ = hold.Extend(none, rlock.Lease(time.Minute)) })
			locktest.Unlock(t, hold)
			for _, c := range p.Clients {
				locktest.CloseClient(t, c)
			}
		},
	},
	{
		Name:  "any negative lease is the watchdog's, which defaults to 30 s and is renewed",
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			lock := k.New(e.Party(t), "lock")
			for _, lease := range []rlock.Lease{rlock.Watchdog, -rlock.Lease(time.Second), math.MinInt64} {
				hold := locktest.Acquire(t, lock, lease)
				require.InDelta(t, 30*time.Second, time.Until(hold.Deadline()), float64(time.Second))
				time.Sleep(2 * time.Minute)
				require.True(t, hold.Valid())
				require.NoError(t, hold.Extend(t.Context(), lease))
				locktest.Unlock(t, hold)
			}
		},
	},
}

// requireOnePrefix requires that an error begins with the name of this library, and does not repeat
// it.
func requireOnePrefix(t *testing.T, err error) {
	t.Helper()
	require.Error(t, err)
	require.True(t, strings.HasPrefix(err.Error(), "holdfast: "), err)
	require.Equal(t, 1, strings.Count(err.Error(), "holdfast: "), err)
}
