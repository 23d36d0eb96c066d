package rlock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// A worker's request is executed after rueidis has given it up, its caller has acquired the lock
// again and has left or detached it, and the lease is over.
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
				locking := lockInBackground(t.Context(), l, time.Second)
				command := receive(t, redis.kept, "nothing is sent")
				close(redis.giveUp)
				leave(t, acquired(t, locking))
				require.True(t, exists(s, "order"), "the lock that was left is released")
				eventually(t, func() bool { return !exists(s, "order") }, "its lease does not end")
				var hold *rlock.Hold
				if held {
					hold = take(t, other.NewLock("order"), longLease)
				}
				for i, word := range command {
					// With its own leases it would end by itself soon.
					if command[i] = strings.Replace(word, " 1000 ", " 3600000 ", 1); word == "1000" {
						command[i] = "3600000"
					}
				}
				s.Do(t, command...)
				if held {
					unlock(t, hold)
				}
				eventually(t, func() bool { return !exists(s, "order") }, "nobody releases it")
				require.NoError(t, take(t, other.NewLock("order"), longLease).Unlock(t.Context()))
			})
		}
	}
}

// Close ends the pause before a clean-up, but not the lock that was left.
func TestCloseDoesNotEndALeftLockWithALateRequest(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	redis := &givenUp{Client: s.Client(t), argument: "order", kept: make(chan []string, 1),
		giveUp: make(chan struct{})}
	c := newClientOn(t, redis, anonymous)
	rlock.Detach(c)
	unlock(t, take(t, c.NewLock("warm"), longLease))
	locking := lockInBackground(t.Context(), c.NewLock("order"), longLease)
	receive(t, redis.kept, "nothing is sent")
	close(redis.giveUp)
	acquired(t, locking).Leave()
	closeClient(t, c)
	require.True(t, exists(s, "order"))
}

// The deadline of a hold is earlier than the end of its lease in Redis.
func TestLeftLockWithALateRequestStaysForAllOfItsLease(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	redis := &givenUp{Client: s.Client(t), argument: "order",
		kept: make(chan []string, 1), giveUp: make(chan struct{})}
	c := newClientOn(t, redis, anonymous)
	rlock.Detach(c)
	unlock(t, take(t, c.NewLock("warm"), longLease))
	locking := lockInBackground(t.Context(), c.NewLock("order"), 3*time.Second)
	receive(t, redis.kept, "nothing is sent")
	close(redis.giveUp)
	h := acquired(t, locking)
	end := s.DoInt(t, "PEXPIRETIME", "order")
	time.Sleep(time.Until(h.Deadline()) - 200*time.Millisecond)
	h.Leave()
	eventually(t, func() bool { return !exists(s, "order") }, "its lease does not end")
	require.GreaterOrEqual(t, time.Now().UnixMilli(), end)
}
