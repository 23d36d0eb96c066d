//go:build redis

package rlock_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// A worker's request is executed after rueidis has given it up, its caller has acquired the lock
// again and has left or detached it, and the lease is over. If another has the lock by then, the
// request registers an owner that waits no longer.
func TestRequestThatIsLateForALeftLockTakesNothing(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(t *testing.T, h *rlock.Hold){
		"Leave": func(_ *testing.T, h *rlock.Hold) { h.Leave() },
		"Detach": func(t *testing.T, h *rlock.Hold) {
			_, err := h.Detach()
			require.NoError(t, err)
		},
	} {
		for title, held := range map[string]bool{"free": false, "held by another": true} {
			t.Run(name+" "+title, func(t *testing.T) {
				t.Parallel()
				s := redistest.Start(t)
				redis := &givenUp{Client: s.Client(t), argument: "order",
					kept: make(chan []string, 1), giveUp: make(chan struct{})}
				c, other := newClientOn(t, redis, anonymous), newClient(t, s, anonymous)
				rlock.Detach(c)
				l := c.NewLock("order")
				unlock(t, take(t, c.NewLock("warm"), longLease)) // loads the scripts
				var hold *rlock.Hold
				if held {
					hold = take(t, other.NewLock("order"), longLease)
					redis.argument = "holdfast_lock_waiters:{order}" // a request that registers
				}
				locking := lockInBackground(t.Context(), l, time.Second)
				command := receive(t, redis.kept, "nothing is sent")
				if held {
					unlock(t, hold)
				}
				close(redis.giveUp)
				leave(t, acquired(t, locking))
				require.True(t, exists(s, "order"), "the lock that was left is released")
				eventually(t, func() bool { return !exists(s, "order") }, "its lease does not end")
				if held {
					hold = take(t, other.NewLock("order"), longLease)
				}
				if i := slices.Index(command, "1000"); !held {
					command[i] = "3600000" // with its own lease it would end by itself soon
				}
				refusal, _ := s.Do(t, command...).([]any)
				if held {
					require.Len(t, refusal, 4, "it does not register the owner")
					eventually(t, func() bool { return registrations(s, "order") == 0 },
						"nobody withdraws it")
					unlock(t, hold)
				}
				eventually(t, func() bool { return !exists(s, "order") }, "nobody releases it")
				require.NoError(t, take(t, other.NewLock("order"), longLease).Unlock(t.Context()))
			})
		}
	}
}
