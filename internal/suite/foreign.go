package suite

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/rlock"
)

// Foreign code: a tracer of the user's panics or ends its goroutine, against its promise.
var foreign = []Promise{
	{
		Name: "a lock is free after a tracer has ended the call",
		Test: func(t *testing.T, e *Env, k Kind) {
			for name, is := range map[string]func(event any) bool{
				"AcquireStart": func(e any) bool { _, is := e.(rlock.AcquireStart); return is },
				"HoldStart":    func(e any) bool { _, is := e.(rlock.HoldStart); return is },
				"AcquireEnd":   func(e any) bool { _, is := e.(rlock.AcquireEnd); return is },
			} {
				for how, end := range locktest.Ends {
					var armed atomic.Bool
					armed.Store(true)
					p := e.Party(t, func(o *rlock.Options) {
						o.Tracer = &locktest.Tracer{Block: func(event any) {
							if is(event) && armed.Swap(false) {
								end()
							}
						}}
					})
					lock := k.New(p, "lock")
					require.Equal(t, how, locktest.EndOf(t, func() {
						_, _ = lock.Lock(t.Context(), rlock.Watchdog)
					}), name)
					for _, lock := range []rlock.Locker{lock, k.Contender(e.Party(t), "lock")} {
						hold, err := lock.TryLock(t.Context(), locktest.Timeout, rlock.Watchdog)
						require.NoError(t, err)
						locktest.Unlock(t, hold)
					}
					e.RequireNothingLeft(t)
				}
			}
		},
	},
	{
		Name: "a tracer is told more after it has ended the goroutine that tells",
		Test: func(t *testing.T, e *Env, k Kind) {
			var armed atomic.Bool
			armed.Store(true)
			tracer := &locktest.Tracer{Block: func(event any) {
				if _, is := event.(rlock.HoldEnd); is && armed.Swap(false) {
					locktest.Ends["Goexit"]()
				}
			}}
			p := e.Party(t, func(o *rlock.Options) { o.Tracer = tracer })
			for _, name := range []string{"first", "second"} {
				hold := locktest.Acquire(t, k.New(p, name), rlock.Watchdog)
				e.settle()
				k.force(t, p, name)
				requireLost(t, hold)
			}
			locktest.WaitToHear[rlock.HoldEnd](t, tracer, 1)
		},
	},
}
