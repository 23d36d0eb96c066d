package suite

import (
	"context"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/internal/logtest"
	"holdfast/rlock"
)

const wasDropped = "garbage-collected without Unlock"

// Dropped holds: a hold that nobody can release any more is reported once, and is renewed. Those of
// MultiLocks and RedLocks are renewed as well, and not reported.
var dropped = []Promise{
	{
		Name:  "a dropped hold is reported once with its line, and goes on being renewed",
		Kept:  only("plain", "read"), // a garbage collection costs much
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			ctx, end := context.WithCancel(t.Context()) // lasts longer than the hold
			defer end()
			for name, drop := range map[string]func(rlock.Locker){
				"hold": func(l rlock.Locker) { locktest.AcquireUnkept(ctx, t, l) },
				"hold, context and owner": func(l rlock.Locker) {
					locktest.AcquireUnkept(rlock.WithOwner(ctx), t, l).Context()
				},
				"two levels": func(l rlock.Locker) {
					outer := locktest.AcquireUnkept(ctx, t, l)
					if !k.Flat {
						locktest.AcquireUnkept(outer.Context(), t, l).Context()
					}
				},
			} {
				var log logtest.Lines
				p := e.Party(t, debug, func(o *rlock.Options) { o.Logger = log.Logger() })
				locktest.Dropping(func() { drop(k.New(p, name)) })
				renewals(300, func() bool { return len(log.With(wasDropped)) > 0 })
				renewals(3, func() bool { return false })
				lines := log.With(wasDropped)
				require.Len(t, lines, 1, name)
				require.Contains(t, lines[0], name)
				require.Regexp(t, `acquired at .*\.go:\d+`, lines[0])
				require.Empty(t, log.With(" lost"), "it is not renewed")
				_, err := k.Contender(p, name).TryLock(t.Context(), rlock.NoWait, rlock.Watchdog)
				require.ErrorIs(t, err, rlock.ErrNotAcquired)
			}
		},
	},
	{
		Name:  "a hold is not dropped while somebody can release it or waits for its end",
		Kept:  only("plain", "read"), // a garbage collection costs much
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			var log logtest.Lines
			p := e.Party(t, func(o *rlock.Options) { o.Logger = log.Logger() })
			owner := rlock.WithOwner(t.Context())
			for name, acquire := range map[string]func(lock rlock.Locker) (release func() error){
				"hold": func(lock rlock.Locker) func() error {
					hold := locktest.AcquireUnkept(t.Context(), t, lock)
					return func() error { return hold.Unlock() }
				},
				"context derived from that of the hold": func(lock rlock.Locker) func() error {
					ctx := locktest.AcquireUnkept(t.Context(), t, lock).Context()
					ctx, cancel := context.WithCancel(ctx)
					return func() error {
						defer cancel()
						return lock.Unlock(ctx)
					}
				},
				"context of the owner": func(lock rlock.Locker) func() error {
					locktest.AcquireUnkept(owner, t, lock)
					return func() error { return lock.Unlock(owner) }
				},
				"context of the outer hold": func(lock rlock.Locker) func() error {
					outer := locktest.AcquireUnkept(t.Context(), t, lock)
					if k.Flat {
						return func() error { return outer.Unlock() }
					}
					locktest.AcquireUnkept(outer.Context(), t, lock)
					locktest.Unlock(t, outer)
					return func() error { return lock.Unlock(outer.Context()) }
				},
				"end": func(lock rlock.Locker) func() error {
					done := locktest.AcquireUnkept(t.Context(), t, lock).Done()
					return func() error {
						forceUnlock(t, p, k, "end")
						<-done
						return nil
					}
				},
			} {
				var release func() error
				locktest.Dropping(func() { release = acquire(k.New(p, name)) })
				renewals(3, func() bool { return false })
				require.Empty(t, log.With(wasDropped), name)
				require.NoError(t, release(), name)
			}
		},
	},
	{
		Name:  "a lost hold that nobody unlocks does not keep the context of its caller",
		Kept:  only("plain", "multilock", "redlock"), // a garbage collection costs much
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			type key struct{}
			for name, use := range map[string]func(*rlock.Hold){
				"hold":    func(*rlock.Hold) {},
				"context": func(h *rlock.Hold) { h.Context() },
			} {
				p := e.Party(t)
				var value weak.Pointer[[64]byte]
				locktest.Dropping(func() {
					v := new([64]byte)
					value = weak.Make(v)
					ctx := rlock.WithOwner(context.WithValue(context.Background(), key{}, v))
					hold := locktest.AcquireUnkept(ctx, t, k.New(p, name))
					use(hold)
					forceUnlock(t, p, k, name)
					<-hold.Done()
				})
				renewals(3, func() bool { return value.Value() == nil })
				require.Nil(t, value.Value(), name)
			}
		},
	},
}

// renewals lets that many renewals pass, each after a garbage collection, or fewer if done.
func renewals(n int, done func() bool) {
	for ; n > 0 && !done(); n-- {
		runtime.GC()
		time.Sleep(10 * time.Second) // of the bubble
	}
}
