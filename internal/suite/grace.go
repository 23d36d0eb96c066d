package suite

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/rlock"
)

var errStop = errors.New("the caller stops")

// Grace: WithGrace lets the work under a lock outlive its caller.
var grace = []Promise{
	{
		Name:  "work goes on under the lock for exactly the grace, and then ends as its caller did",
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			p := e.Party(t)
			for name, want := range map[string]struct {
				caller func() (context.Context, func())
				err    error
				cause  error
			}{
				"stopped": {func() (context.Context, func()) {
					ctx, stop := context.WithCancelCause(t.Context())
					return ctx, func() { stop(errStop) }
				}, context.Canceled, errStop},
				"timed out": {func() (context.Context, func()) {
					ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errStop)
					return ctx, func() { <-ctx.Done(); cancel() }
				}, context.DeadlineExceeded, errStop},
			} {
				ctx, end := want.caller()
				err := rlock.Do(rlock.WithGrace(ctx, 10*time.Second), k.New(p, name), rlock.NoWait,
					rlock.Watchdog, func(work context.Context) error {
						end()
						ended := time.Now()
						time.Sleep(10*time.Second - 1)
						require.NoError(t, work.Err(), name)
						requireBusy(t, k.Contender(p, name))
						<-work.Done()
						require.Equal(t, 10*time.Second, time.Since(ended), name)
						require.Equal(t, want.err, work.Err(), name)
						require.Equal(t, want.cause, context.Cause(work), name)
						requireBusy(t, k.Contender(p, name), "the lock is held until work returns")
						return nil
					})
				require.NoError(t, err, name)
			}
			e.RequireNothingLeft(t)
		},
	},
	{
		Name:  "the grace counts from the end of the caller, whenever somebody asks for the context",
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			ctx, stop := context.WithCancel(t.Context())
			hold := locktest.AcquireWith(rlock.WithGrace(ctx, 10*time.Second), t,
				k.New(e.Party(t), "lock"), rlock.Watchdog)
			stopped := time.Now()
			stop()
			time.Sleep(4 * time.Second)
			<-hold.Context().Done()
			require.Equal(t, 10*time.Second, time.Since(stopped))
			locktest.Unlock(t, hold)
		},
	},
	{
		Name:  "the wait for the lock ends with the caller's context, without the grace",
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			locktest.Acquire(t, k.Contender(e.Party(t), "lock"), rlock.Watchdog)
			ctx, stop := context.WithCancelCause(t.Context())
			waiter := e.waiter(rlock.WithGrace(ctx, time.Minute), t, k.New(e.Party(t), "lock"))
			stopped := time.Now()
			stop(errStop)
			result := locktest.Result(t, waiter)
			require.ErrorIs(t, result.Err, errStop)
			require.ErrorIs(t, result.Err, rlock.ErrNotAcquired)
			require.Equal(t, stopped, result.At)
		},
	},
	{
		Name: "the context of a hold with a grace ends with the hold, even in the grace",
		Test: func(t *testing.T, e *Env, k Kind) {
			for _, inGrace := range []bool{false, true} {
				for name, end := range map[string]func(p *Party, h *rlock.Hold){
					"released": func(_ *Party, h *rlock.Hold) { locktest.Unlock(t, h) },
					"lost":     func(p *Party, _ *rlock.Hold) { k.force(t, p, "lost") },
					"closed":   func(p *Party, _ *rlock.Hold) { p.close(t) },
				} {
					p := e.Party(t, func(o *rlock.Options) { o.ReleaseOnClose = true })
					ctx, stop := context.WithCancel(t.Context())
					hold := locktest.AcquireWith(rlock.WithGrace(ctx, time.Hour), t, k.New(p, name),
						rlock.Watchdog)
					if inGrace {
						stop()
						locktest.Eventually(t, func() bool {
							_, begun := hold.Context().Deadline()
							return begun
						}, "the grace does not begin")
					}
					e.settle() // a RedLock is held on all masters
					end(p, hold)
					locktest.Receive(t, hold.Context().Done(), "the context goes on")
					require.Equal(t, hold.Err(), context.Cause(hold.Context()), name)
					stop()
				}
			}
		},
	},
	{
		Name:  "what is acquired under a lock gets no second grace",
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			p := e.Party(t)
			ctx, stop := context.WithCancelCause(t.Context())
			outer := locktest.AcquireWith(rlock.WithGrace(ctx, 10*time.Second), t, k.New(p, "outer"),
				rlock.Watchdog)
			derived := map[string]context.Context{
				"nested":    outer.Context(),
				"detached":  rlock.Detached(outer.Context()),
				"owner":     rlock.WithOwner(outer.Context()),
				"ensured":   rlock.EnsureOwner(rlock.Detached(outer.Context())),
				"explicit":  rlock.WithGrace(outer.Context(), time.Hour),
				"goroutine": rlock.WithGrace(rlock.Detached(outer.Context()), time.Hour),
			}
			holds := make(map[string]*rlock.Hold)
			for name, ctx := range derived {
				holds[name] = locktest.AcquireWith(ctx, t, k.New(p, name), rlock.Watchdog)
			}
			if !k.Flat {
				holds["same"] = locktest.AcquireWith(outer.Context(), t, k.New(p, "outer"), rlock.Watchdog)
			}
			stop(errStop)
			time.Sleep(10*time.Second - 1)
			for name, hold := range holds {
				require.NoError(t, hold.Context().Err(), name)
			}
			time.Sleep(time.Nanosecond)
			e.settle()
			for name, hold := range holds {
				require.Equal(t, errStop, context.Cause(hold.Context()), name)
				locktest.Unlock(t, hold)
			}
			locktest.Unlock(t, outer)
		},
	},
	{
		Name:  "the context of a hold with a grace has its own deadline",
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			p := e.Party(t)
			endless, stop := context.WithCancel(t.Context())
			caller, cancel := context.WithTimeout(endless, time.Minute)
			defer cancel()
			now := time.Now()
			for name, want := range map[string]struct {
				ctx    context.Context
				before time.Time
			}{
				"endless": {endless, time.Time{}}, "caller": {caller, now.Add(70 * time.Second)},
			} {
				hold := locktest.AcquireWith(rlock.WithGrace(want.ctx, 10*time.Second), t, k.New(p, name),
					rlock.Watchdog)
				defer locktest.Unlock(t, hold)
				until, _ := hold.Context().Deadline()
				require.Equal(t, want.before, until, name)
				defer func() {
					until, _ := hold.Context().Deadline()
					require.Equal(t, now.Add(10*time.Second), until, "the grace has begun")
				}()
			}
			stop()
			e.settle()
		},
	},
	{
		Name: "without a grace the context ends with its caller, even after a WithGrace before",
		Test: func(t *testing.T, e *Env, k Kind) {
			for _, none := range []time.Duration{0, -time.Second} {
				ctx, stop := context.WithCancel(t.Context())
				hold := locktest.AcquireWith(
					rlock.WithGrace(rlock.WithGrace(ctx, time.Hour), none),
					t,
					k.New(e.Party(t), "lock"),
					rlock.Watchdog,
				)
				work := hold.Context()
				stop()
				require.ErrorIs(t, work.Err(), context.Canceled)
				locktest.Unlock(t, hold)
			}
		},
	},
	{
		Name:  "an ended hold with a grace does not keep the context of its caller",
		Kept:  only("plain", "multilock", "redlock"), // a garbage collection costs much
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			type key struct{}
			lasting, end := context.WithCancel(context.Background())
			defer end()
			for _, inGrace := range []bool{false, true} {
				p := e.Party(t)
				var value weak.Pointer[[64]byte]
				locktest.Dropping(func() {
					v := new([64]byte)
					value = weak.Make(v)
					ctx, stop := context.WithValue(lasting, key{}, v), func() {}
					if inGrace {
						ctx, stop = context.WithCancel(ctx)
					}
					hold := locktest.AcquireUnkept(rlock.WithGrace(ctx, time.Hour), t, k.New(p, "lock"))
					stop()
					e.settle()
					locktest.Unlock(t, hold)
				})
				runtime.GC()
				require.Nil(t, value.Value(), "in the grace: %v", inGrace)
			}
		},
	},
}
