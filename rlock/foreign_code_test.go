package rlock_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
	"holdfast/internal/wire"
	"holdfast/rlock"
)

// ending is a rueidis client with a hook, which ends the goroutine of a command about a lock once:
// before it is sent or after its reply.
type ending struct {
	rueidis.Client
	end   atomic.Pointer[func()]
	after bool
}

func (h *ending) Do(ctx context.Context, command rueidis.Completed) (r rueidis.RedisResult) {
	about := slices.Contains(command.Commands(), "order")
	if h.after {
		r = h.Client.Do(ctx, command)
		// Not after the reply that the script is not loaded yet: nothing was executed then.
		about = about && (r.Error() == nil || rueidis.IsRedisNil(r.Error()))
	}
	if end := h.end.Load(); about && end != nil && h.end.CompareAndSwap(end, nil) {
		(*end)()
	}
	if !h.after {
		r = h.Client.Do(ctx, command)
	}
	return r
}

// Hooks around rueidis may panic, or end the goroutine. The caller's ends in the same way, and
// nothing stays locked: neither the lock, nor its queue, for this client or others.
func TestLockIsFreeAfterAHookHasEndedACall(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	other := newClient(t, s, rlock.Options{}).NewLock("order")
	calls := []string{"Lock", "Extend", "Unlock", "batch"}
	for how, end := range locktest.Ends {
		for i, name := range slices.Repeat(calls, 4) {
			t.Run(name+" "+how, func(t *testing.T) {
				redis := &ending{Client: s.Client(t), after: i/len(calls)%2 == 0}
				c := newClientOn(t, redis, rlock.Options{})
				if i >= 2*len(calls) { // a worker sends it
					rlock.Detach(c)
				}
				l := c.NewLock("order")
				require.Equal(t, how, locktest.EndOf(t, func() {
					var hold *rlock.Hold
					if name == "Extend" || name == "Unlock" {
						hold = take(t, l, rlock.Watchdog)
						defer func() { _ = hold.Unlock() }()
					}
					redis.end.Store(&end)
					switch name {
					case "Lock":
						_, _ = l.Lock(t.Context(), rlock.Watchdog)
					case "Extend":
						_ = hold.Extend(t.Context(), rlock.Lease(time.Hour))
					case "batch":
						_, _ = hook.TryBatch(t.Context(), rlock.Watchdog, []*rlock.Lock{l})
					} // otherwise the deferred Unlock
				}))
				require.Nil(t, redis.end.Load(), "no command met the hook")
				for _, l := range []*rlock.Lock{l, other} {
					unlock(t, acquired(t, lockInBackground(t.Context(), l, rlock.Watchdog)))
				}
				require.Zero(t, rlock.Waiting(l))
			})
		}
	}
}

// The head of a queue asks for others as well. They go on without it.
func TestWaitersGoOnAfterAHookHasEndedTheHeadOfTheirQueue(t *testing.T) {
	t.Parallel()
	for how, end := range locktest.Ends {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			redis := &ending{Client: s.Client(t)}
			l := newClientOn(t, redis, rlock.Options{}).NewLock("order")
			other := take(t, newClient(t, s, rlock.Options{}).NewLock("order"), rlock.Watchdog)
			ended := make(chan string, 1)
			go func() {
				ended <- locktest.EndOf(t, func() { _, _ = l.Lock(t.Context(), rlock.Watchdog) })
			}()
			eventually(t, func() bool { return rlock.Waiting(l) == 1 }, "the head does not wait")
			next := lockInBackground(t.Context(), l, rlock.Watchdog)
			eventually(t, func() bool { return rlock.Waiting(l) == 2 }, "the next does not wait")
			redis.end.Store(&end)
			s.Do(t, "PUBLISH", wire.Channel("order"), "0") // it asks
			require.Equal(t, how, receive(t, ended, "the head has not ended"))
			unlock(t, other)
			unlock(t, acquired(t, next))
		})
	}
}

// nilLocker breaks the promises of a Locker.
type nilLocker struct{ rlock.Locker }

func (nilLocker) TryLock(context.Context, time.Duration, rlock.Lease) (*rlock.Hold, error) {
	return nil, nil
}

func TestDoDoesNotRunWithoutAHold(t *testing.T) {
	t.Parallel()
	err := rlock.Do(t.Context(), nilLocker{}, rlock.NoWait, rlock.Watchdog,
		func(context.Context) error { return errors.New("it ran without a lock") })
	require.ErrorIs(t, err, rlock.ErrNotRun)
	require.ErrorIs(t, err, rlock.ErrNotHeld)
}
