package suite

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/rlock"
)

var errWork = errors.New("the work failed")

// Do and With run a function under a lock.
var do = []Promise{
	{
		Name: "the function runs under the lock, which is free afterwards",
		Test: func(t *testing.T, e *Env, k Kind) {
			lock, other := k.New(e.Party(t), "lock"), k.Contender(e.Party(t), "lock")
			n, err := rlock.With(t.Context(), lock, rlock.Forever, rlock.Watchdog,
				func(ctx context.Context) (int, error) {
					requireBusy(t, other)
					if k.Flat {
						return 7, nil
					}
					return 7, rlock.Do(ctx, lock, rlock.NoWait, rlock.Watchdog,
						func(context.Context) error { return nil })
				})
			require.NoError(t, err)
			require.Equal(t, 7, n)
			e.RequireNothingLeft(t)
		},
	},
	{
		Name: "the error and the result of the function are returned as they are",
		Test: func(t *testing.T, e *Env, k Kind) {
			n, err := rlock.With(t.Context(), k.New(e.Party(t), "lock"), rlock.NoWait,
				rlock.Watchdog, func(context.Context) (int, error) { return 7, errWork })
			require.Equal(t, errWork, err)
			require.Equal(t, 7, n)
			e.RequireNothingLeft(t)
		},
	},
	{
		Name: "ErrNotRun tells whether the function was called",
		Test: func(t *testing.T, e *Env, k Kind) {
			p := e.Party(t)
			locktest.Acquire(t, k.Contender(p, "busy"), rlock.Watchdog)
			try := func(ctx context.Context) error {
				return rlock.Do(ctx, k.New(p, "busy"), rlock.NoWait, rlock.Watchdog,
					func(context.Context) error { panic("it was called") })
			}
			err := try(t.Context())
			require.ErrorIs(t, err, rlock.ErrNotRun)
			require.ErrorIs(t, err, rlock.ErrNotAcquired)

			err = rlock.Do(t.Context(), k.New(p, "lock"), rlock.NoWait, rlock.Watchdog, try)
			require.NotErrorIs(t, err, rlock.ErrNotRun, "the outer function was called")
			require.ErrorIs(t, err, rlock.ErrNotAcquired)

			err = rlock.Do(t.Context(), k.New(p, "lock"), rlock.NoWait, 0, try)
			require.ErrorIs(t, err, rlock.ErrNotRun)
			require.ErrorIs(t, err, rlock.ErrInvalid)
		},
	},
	{
		Name: "a function that panics or ends its goroutine releases the lock",
		Test: func(t *testing.T, e *Env, k Kind) {
			lock := k.New(e.Party(t), "lock")
			for how, end := range locktest.Ends {
				require.Equal(t, how, locktest.EndOf(t, func() {
					_ = rlock.Do(t.Context(), lock, rlock.NoWait, rlock.Watchdog,
						func(context.Context) error { end(); return nil })
				}))
				e.RequireNothingLeft(t)
			}
		},
	},
	{
		Name: "a loss is reported, whether the function notices it or not",
		Test: func(t *testing.T, e *Env, k Kind) {
			p := e.Party(t)
			run := func(result func(context.Context) error) error {
				return rlock.Do(t.Context(), k.New(p, "lock"), rlock.NoWait, rlock.Watchdog,
					func(ctx context.Context) error {
						k.force(t, p, "lock")
						locktest.Receive(t, ctx.Done(), "the context of a lost hold goes on")
						return result(ctx)
					})
			}
			require.ErrorIs(t, run(func(context.Context) error { return nil }), rlock.ErrLost)
			err := run(func(context.Context) error { return errWork })
			require.ErrorIs(t, err, rlock.ErrLost)
			require.ErrorIs(t, err, errWork)
			err = run(context.Cause)
			require.ErrorIs(t, err, rlock.ErrLost)
			if k.Name != "multilock" { // whose parts tell it again
				require.NotContains(t, err.Error(), "\n", "it is told twice")
			}
		},
	},
}
