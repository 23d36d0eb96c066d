//go:build redis

package rlock_test

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// drifting is a rueidis client that, once, holds back an acquisition of one lock until its context
// ends, and then reports that there was no reply.
type drifting struct {
	rueidis.Client
	script, lock string

	mu      sync.Mutex
	armed   bool
	command []string
}

func (d *drifting) Do(ctx context.Context, command rueidis.Completed) rueidis.RedisResult {
	words := command.Commands()
	acquires := slices.Contains(words, d.script) && slices.Contains(words, d.lock)
	// Like rueidis with a connection, it checks Err first.
	if ctx.Err() == nil && acquires && ctx.Done() != nil && d.keep(words) {
		<-ctx.Done()
	}
	return d.Client.Do(ctx, command)
}

func (d *drifting) keep(words []string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.armed {
		return false
	}
	d.armed, d.command = false, slices.Clone(words)
	return true
}

// arm holds the next command back, and returns the one held back now.
func (d *drifting) arm() (command []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.armed = d.command == nil
	return d.command
}

func TestLockTakenLateByAnAbandonedCommandIsReleased(t *testing.T) {
	t.Parallel()
	const limit = 2 * time.Second
	// a caller with another context may leave, and sends nothing itself
	endless := context.Background()
	for name, try := range map[string]func(t *testing.T, lock *rlock.Lock){
		"by the last holder": func(t *testing.T, lock *rlock.Lock) {
			hold, err := lock.Lock(endless, longLease)
			require.NoError(t, err)
			unlock(t, hold)
		},
		"by the caller that gave up": func(t *testing.T, lock *rlock.Lock) {
			hold, err := lock.TryLock(endless, limit, longLease)
			if err == nil {
				unlock(t, hold) // it went another way, or its reply came in time after all
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEach(t, givenAway(), func(t *testing.T, k kind) {
				s := redistest.Start(t)
				redis := &drifting{Client: s.Client(t), script: loaded(t, s, k.acquire), lock: "order"}
				c := newClientOn(t, redis, rlock.Options{CommandTimeout: limit})
				var command []string
				eventually(t, func() bool {
					// callers send commands themselves only if replies come
					unlock(t, take(t, k.lock(c, "warm"), longLease))
					redis.arm()
					try(t, k.lock(c, "order"))
					command = redis.arm()
					return command != nil
				}, "nothing is sent by who waits for it")
				waitUntilFree(t, s, "order")
				_, refused := s.Do(t, command...).([]any)
				require.False(t, refused, "it takes the lock")
				eventually(t, func() bool { return !exists(s, "order") }, "nobody releases it")
			})
		})
	}
}

// Many of them are released again and again, as long as their leases last.
func TestUnconfirmedCommandsDoNotDelayOthers(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	const limit = 300 * time.Millisecond
	c := newClient(t, s, rlock.Options{CommandTimeout: limit})
	other := newClient(t, s, rlock.Options{})
	var busy sync.WaitGroup
	end := make(chan struct{})
	for i := range 48 {
		busy.Go(func() {
			for lock := c.NewLock("busy" + strconv.Itoa(i)); ; {
				select {
				case <-end:
					return
				default:
				}
				if hold, err := lock.Lock(context.Background(), rlock.Watchdog); err == nil {
					_ = hold.Unlock(t.Context())
				}
			}
		})
	}
	eventually(t, func() bool { return s.CommandStats(t)["evalsha"] > 1000 }, "they are not busy")
	s.Do(t, "CLIENT", "PAUSE", "600", "ALL")
	<-time.After(2 * limit)
	close(end)
	busy.Wait()

	hold := take(t, other.NewLock("order"), longLease)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	waiter := registersBy(t, s, 1, "order", func() <-chan outcome {
		return lockInBackground(ctx, c.NewLock("order"), longLease)
	})
	cancel()
	require.ErrorIs(t, result(t, waiter).Err, context.Canceled)
	start := time.Now()
	unlock(t, hold)
	unlock(t, acquired(t, lockInBackground(t.Context(), other.NewLock("order"), longLease)))
	require.Less(t, time.Since(start), 3*time.Second, "its registration was not removed")
}
