package rlock_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
	"holdfast/lua"
	"holdfast/rlock"
)

// ending is a rueidis client with a hook, which ends the goroutine of a command about a lock once:
// before it is sent or after its reply.
type ending struct {
	rueidis.Client
	end           atomic.Pointer[func()]
	before, after bool
}

func (h *ending) Do(ctx context.Context, command rueidis.Completed) rueidis.RedisResult {
	if !slices.ContainsFunc(command.Commands(), func(word string) bool { return word == "order" }) {
		return h.Client.Do(ctx, command)
	}
	if h.before {
		h.reached()
	}
	result := h.Client.Do(ctx, command)
	// Not after the reply that the script is not loaded yet: nothing was executed then.
	executed := result.Error() == nil || rueidis.IsRedisNil(result.Error())
	if h.after && executed {
		h.reached()
	}
	return result
}

// reached ends the goroutine, once.
func (h *ending) reached() {
	if end := h.end.Swap(nil); end != nil {
		(*end)()
	}
}

// Hooks around rueidis may panic, or end the goroutine. The caller's ends in the same way, and
// nothing stays locked: neither the lock, nor its queue, for this client or others.
func TestLockIsFreeAfterAHookHasEndedACall(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for name, call := range map[string]func(ctx context.Context, l *rlock.Lock, arm func()){
		"NoWait": func(ctx context.Context, l *rlock.Lock, arm func()) {
			arm()
			_, _ = l.TryLock(ctx, rlock.NoWait, rlock.Watchdog)
		},
		"Lock": func(ctx context.Context, l *rlock.Lock, arm func()) {
			arm()
			_, _ = l.Lock(ctx, rlock.Watchdog)
		},
		"nested Lock": func(ctx context.Context, l *rlock.Lock, arm func()) {
			hold, err := l.Lock(ctx, rlock.Watchdog)
			if err != nil {
				panic(err)
			}
			defer func() { _ = hold.Unlock(ctx) }()
			arm()
			_, _ = l.Lock(hold.Context(), rlock.Watchdog)
		},
		"Extend": func(ctx context.Context, l *rlock.Lock, arm func()) {
			hold, err := l.Lock(ctx, rlock.Watchdog)
			if err != nil {
				panic(err)
			}
			defer func() { _ = hold.Unlock(ctx) }()
			arm()
			_ = hold.Extend(ctx, time.Hour)
		},
		"Unlock": func(ctx context.Context, l *rlock.Lock, arm func()) {
			hold, err := l.Lock(ctx, rlock.Watchdog)
			if err != nil {
				panic(err)
			}
			arm()
			_ = hold.Unlock(ctx)
		},
		"batch": func(ctx context.Context, l *rlock.Lock, arm func()) {
			arm()
			_, _ = hook.TryBatch(ctx, rlock.Watchdog, []*rlock.Lock{l})
		},
	} {
		for how, end := range locktest.Ends {
			for _, before := range []bool{true, false} {
				for _, worker := range []bool{false, true} {
					title := strings.Join([]string{name, how}, " ")
					t.Run(title, func(t *testing.T) {
						redis := &ending{Client: s.Client(t), before: before, after: !before}
						c := newClientOn(t, redis, rlock.Options{})
						if worker {
							rlock.Detach(c)
						}
						l, other := c.NewLock("order"), newClient(t, s, rlock.Options{}).NewLock("order")
						ended := locktest.EndOf(t, func() {
							call(t.Context(), l, func() { redis.end.Store(&end) })
						})
						require.Equal(t, how, ended)
						require.Nil(t, redis.end.Load(), "no command met the hook")
						for _, l := range []*rlock.Lock{l, other} {
							hold, err := l.TryLock(t.Context(), locktest.Timeout, rlock.Watchdog)
							require.NoError(t, err)
							unlock(t, hold)
						}
						require.Zero(t, rlock.Waiting(l))
						closeClient(t, c)
					})
				}
			}
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
			redis := &ending{Client: s.Client(t), before: true}
			l := newClientOn(t, redis, rlock.Options{}).NewLock("order")
			other := take(t, newClient(t, s, rlock.Options{}).NewLock("order"), rlock.Watchdog)
			ended := make(chan string, 1)
			go func() {
				ended <- locktest.EndOf(t, func() { _, _ = l.Lock(t.Context(), rlock.Watchdog) })
			}()
			eventually(t, func() bool { return rlock.Waiting(l) == 1 }, "the head does not wait")
			next := locktest.LockInBackground(t.Context(), l, rlock.Watchdog)
			eventually(t, func() bool { return rlock.Waiting(l) == 2 }, "the next does not wait")
			redis.end.Store(&end)
			s.Do(t, "PUBLISH", lua.Channel("order"), "0") // it asks
			require.Equal(t, how, locktest.Receive(t, ended, "the head has not ended"))
			unlock(t, other)
			unlock(t, locktest.Acquired(t, next))
		})
	}
}
