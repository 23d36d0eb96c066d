package suite

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/internal/logtest"
	"holdfast/multilock"
	"holdfast/rlock"
)

// Deadlocks: a caller that waits for itself, or that closes a cycle of callers of its process, gets
// ErrDeadlock at once. Nobody else does.
var deadlock = []Promise{
	{
		Name: "a caller that waits for itself gets ErrDeadlock at once, with the line that acquired",
		Kept: ofOneClient,
		Test: func(t *testing.T, e *Env, k Kind) {
			p := e.Party(t, debug)
			hold := locktest.Acquire(t, k.Contender(p, "lock"), rlock.Watchdog)
			for name, lock := range map[string]rlock.Locker{
				"another owner":  k.New(p, "lock"),
				"another client": k.New(e.Party(t), "lock"),
				"another kind":   p.Client.NewNonReentrantLock("lock"),
			} {
				_, err := lock.Lock(rlock.WithOwner(hold.Context()), rlock.Watchdog)
				require.ErrorIs(t, err, rlock.ErrDeadlock, name)
				require.ErrorIs(t, err, rlock.ErrNotAcquired)
				require.ErrorContains(t, err, "held by the caller itself")
				require.Regexp(t, `acquired at .*\.go:\d+`, err.Error())
				requireOnePrefix(t, err)
			}
			locktest.Unlock(t, hold)
			e.RequireNothingLeft(t)
		},
	},
	{
		Name:  "the caller that closes a cycle gets ErrDeadlock at once, and the others go on",
		Kept:  ofOneClient,
		Exact: true, // the others must wait before
		Test: func(t *testing.T, e *Env, k Kind) {
			for way, nested := range map[string]func(*rlock.Hold, context.Context) context.Context{
				"hold":  func(h *rlock.Hold, _ context.Context) context.Context { return h.Context() },
				"owner": func(_ *rlock.Hold, ctx context.Context) context.Context { return ctx },
				"derived": func(h *rlock.Hold, _ context.Context) context.Context {
					return context.WithoutCancel(h.Context())
				},
			} {
				p := e.Party(t, debug)
				names := []string{way + "1", way + "2", way + "3"}
				var inside []context.Context
				var holds []*rlock.Hold
				for _, name := range names {
					ctx := rlock.WithOwner(t.Context())
					hold := locktest.AcquireWith(ctx, t, k.Contender(p, name), rlock.Watchdog)
					holds, inside = append(holds, hold), append(inside, nested(hold, ctx))
				}
				waiting := []<-chan locktest.Outcome{
					e.waiter(inside[1], t, k.New(p, names[0])), e.waiter(inside[2], t, k.New(p, names[1])),
				}
				_, err := k.New(p, names[2]).Lock(inside[0], rlock.Watchdog)
				require.ErrorIs(t, err, rlock.ErrDeadlock, way)
				require.ErrorIs(t, err, rlock.ErrNotAcquired)
				for _, name := range names {
					require.ErrorContains(t, err, `"`+name+`"`)
				}
				require.Regexp(t, `acquired at .*\.go:\d+, waited for at .*\.go:\d+`, err.Error())
				e.requireWaiting(t, waiting...)
				for i, hold := range holds {
					locktest.Unlock(t, hold)
					if i < 2 {
						locktest.Unlock(t, locktest.Acquired(t, waiting[i]))
					}
				}
			}
			e.RequireNothingLeft(t)
		},
	},
	{
		Name:  "a cycle through a MultiLock is ErrDeadlock",
		Kept:  only("multilock"),
		Exact: true,
		Test: func(t *testing.T, e *Env, _ Kind) {
			c := e.Party(t).Client
			b := locktest.Acquire(t, c.NewLock("b"), rlock.Watchdog)
			both := e.waiter(t.Context(), t, multilock.NewOn(c, "a", "b"))
			_, err := c.NewLock("a").Lock(b.Context(), rlock.Watchdog)
			require.ErrorIs(t, err, rlock.ErrDeadlock)
			locktest.Unlock(t, b)
			locktest.Unlock(t, locktest.Acquired(t, both))
		},
	},
	{
		Name: "what a sibling holds, what EnsureOwner acquired, and a lost hold close no cycle",
		Kept: exclusive,
		Test: func(t *testing.T, e *Env, k Kind) {
			p := e.Party(t)
			for name, begin := range map[string]func(lock rlock.Locker) (
				with context.Context, mine *rlock.Hold,
			){
				"sibling": func(lock rlock.Locker) (context.Context, *rlock.Hold) {
					parent := locktest.Acquire(t, p.Client.NewLock("parent"), rlock.Watchdog).Context()
					return parent, locktest.AcquireWith(parent, t, lock, rlock.Watchdog)
				},
				"ensured": func(lock rlock.Locker) (context.Context, *rlock.Hold) {
					request := rlock.EnsureOwner(t.Context())
					return request, locktest.AcquireWith(request, t, lock, rlock.Watchdog)
				},
				"lost": func(lock rlock.Locker) (context.Context, *rlock.Hold) {
					lost := locktest.Acquire(t, lock, rlock.Watchdog)
					forceUnlock(t, p, k, lock.Name())
					return context.WithoutCancel(lost.Context()),
						locktest.Acquire(t, lock, rlock.Watchdog)
				},
			} {
				// One goroutine waits for theirs, whose holder waits for what another has.
				with, mine := begin(k.Contender(p, name))
				theirs := locktest.Acquire(t, k.Contender(p, "of "+name), rlock.Watchdog)
				first := e.waiter(with, t, k.New(p, "of "+name))
				second := e.waiter(theirs.Context(), t, k.New(p, name))
				e.requireWaiting(t, first, second)
				locktest.Unlock(t, mine)
				locktest.Unlock(t, locktest.Acquired(t, second))
				locktest.Unlock(t, theirs)
				locktest.Unlock(t, locktest.Acquired(t, first))
			}
		},
	},
	{
		Name: "readers and locks of two masters' equal names close no cycle",
		Kept: only("read", "redlock"),
		Test: func(t *testing.T, e *Env, k Kind) {
			p := e.Party(t, func(o *rlock.Options) { o.WriterPreference = rlock.PreferNobody })
			if k.Name == "redlock" {
				hold := locktest.Acquire(t, p.Clients[0].NewLock("x"), rlock.Watchdog)
				other := locktest.Acquire(t, p.Clients[1].NewLock("x"), rlock.Watchdog)
				waiting := e.waiter(rlock.WithOwner(hold.Context()), t, p.Clients[1].NewLock("x"))
				e.requireWaiting(t, waiting)
				locktest.Unlock(t, other)
				locktest.Unlock(t, locktest.Acquired(t, waiting))
				return
			}
			a, b := k.New(p, "a"), k.New(p, "b")
			first := locktest.Acquire(t, a, rlock.Watchdog)
			second := locktest.Acquire(t, b, rlock.Watchdog)
			locktest.Unlock(t, locktest.AcquireWith(first.Context(), t, b, rlock.Watchdog))
			locktest.Unlock(t, locktest.AcquireWith(second.Context(), t, a, rlock.Watchdog))
		},
	},
	{
		Name:  "whoever closes a cycle waits if another wait of it ends within a second and before",
		Kept:  ofOneClient,
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			for _, of := range []struct {
				name          string
				first, second time.Duration // waits, begun at once
				later         time.Duration // when the caller that closes the cycle begins
				closing       time.Duration // its wait
				fails         bool
				logged        int
			}{
				{"equal waits", 8 * time.Second, 8 * time.Second, 0, 8 * time.Second, true, 1},
				{"no limit", time.Minute, rlock.Forever, 0, rlock.Forever, true, 1},
				{"a shorter wait", 8 * time.Second, rlock.Forever, 0, 5 * time.Second, true, 1},
				{"another ends soon", 8 * time.Second, rlock.Forever, 7 * time.Second, time.Minute,
					false, 1},
				{"another ends soon, but later", 8 * time.Second, 8 * time.Second, 7 * time.Second,
					600 * time.Millisecond, true, 0},
				{"short waits", time.Second / 3, time.Second / 3, 0, time.Second / 3, false, 0},
			} {
				var log logtest.Lines
				p := e.Party(t, func(o *rlock.Options) { o.Logger = log.Logger() })
				locks := []string{of.name + "a", of.name + "b", of.name + "c"}
				var holds []*rlock.Hold
				for _, name := range locks {
					holds = append(holds, locktest.Acquire(t, k.Contender(p, name), rlock.Watchdog))
				}
				ctx, cancel := context.WithCancel(t.Context())
				try := func(has, wants int, wait time.Duration) <-chan locktest.Outcome {
					with, stop := context.WithCancel(holds[has].Context())
					context.AfterFunc(ctx, stop)
					return locktest.InBackground(func() (*rlock.Hold, error) {
						return k.New(p, locks[wants]).TryLock(with, wait, rlock.Watchdog)
					})
				}
				others := []<-chan locktest.Outcome{try(0, 1, of.first)}
				time.Sleep(time.Millisecond) // equal waits end one after the other
				others = append(others, try(1, 2, of.second))
				time.Sleep(of.later + time.Millisecond)
				closing := try(2, 0, of.closing)
				e.settle()
				require.Equal(t, of.fails, len(closing) == 1, of.name)
				if of.fails {
					require.ErrorIs(t, (<-closing).Err, rlock.ErrDeadlock, of.name)
				}
				require.Len(t, log.With("wait for each other in a cycle"), of.logged, of.name)
				cancel()
				for _, other := range others {
					require.NotErrorIs(t, locktest.Result(t, other).Err, rlock.ErrDeadlock, of.name)
				}
				if !of.fails {
					require.NotErrorIs(t, locktest.Result(t, closing).Err, rlock.ErrDeadlock, of.name)
				}
				for _, hold := range holds {
					locktest.Unlock(t, hold)
				}
			}
		},
	},
}

func debug(o *rlock.Options) { o.Debug = true }

// exclusive is a filter of kinds: those of one client that only one owner holds at a time.
func exclusive(k Kind) bool { return ofOneClient(k) && !k.Shared && !k.ContendersShare }
