package rlock_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/lua"
	"holdfast/redlock"
	"holdfast/rlock"
)

// These tests are about who gets the lock while others hand it over among themselves.

// contend has that many goroutines lock and unlock until the returned function is called. section
// runs under the lock, alone.
func contend(
	t *testing.T, goroutines int, lock rlock.Locker, section func(*rlock.Hold),
) (enough func()) {
	t.Helper()
	var over atomic.Bool
	var work sync.WaitGroup
	for range goroutines {
		work.Go(func() {
			for !over.Load() {
				hold, err := lock.Lock(context.Background(), rlock.Watchdog)
				if err != nil {
					t.Errorf("lock: %v", err)
					return
				}
				section(hold)
				if err := hold.Unlock(context.Background()); err != nil {
					t.Errorf("unlock: %v", err)
					return
				}
			}
		})
	}
	return func() {
		over.Store(true)
		work.Wait()
	}
}

// turns records who held a lock, in order. Only that lock guards it, so that the race detector sees
// two holders.
type turns struct{ of []int }

func (ts *turns) take(who int) func(*rlock.Hold) {
	return func(*rlock.Hold) { ts.of = append(ts.of, who) }
}

// foreigner waits for plain locks as Redisson does: without registration, trying when it hears that
// the lock is free.
type foreigner struct {
	server   *redistest.Server
	lock     string
	listener *listener
}

const foreignOwner = "3f0c1f1e-6a4e-4b63-9d0e-0a4c6f0b7a11:7"

// takeTurn acquires the lock and releases it, and returns how many announcements that took.
func (f *foreigner) takeTurn(t *testing.T) (announcements int) {
	t.Helper()
	redis := f.server.Client(t)
	for {
		plain := lua.NewExclusive(f.lock, false)
		_, _, holder, err := plain.Acquire(t.Context(), redis, foreignOwner, 30*time.Second, "")
		require.NoError(t, err)
		if holder == nil {
			break
		}
		f.listener.next(t)
		announcements++
	}
	plain := lua.NewExclusive(f.lock, false)
	_, err := plain.Release(t.Context(), redis, foreignOwner, 0, lua.HandOver{})
	require.NoError(t, err)
	return announcements
}

func TestWaiterOfRedissonGetsTheLockAmongHandOvers(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for _, k := range givenAway() {
		var history turns
		var stop []func()
		for i := range 2 {
			stop = append(stop,
				contend(t, 8, k.lock(newClient(t, s, rlock.Options{}), k.name), history.take(i)))
		}
		// It comes in the middle of that.
		waitForListeners(t, s, k.name, 2)
		f := &foreigner{s, k.name, listen(t, s, channelOf(k.name))}
		for turn := range 5 {
			start := time.Now()
			announcements := f.takeTurn(t)
			require.Less(t, time.Since(start), longWait/2, "turn %d, after %d announcements", turn,
				announcements)
		}
		for _, enough := range stop {
			enough()
		}
		waitUntilFree(t, s, k.name)
	}
}

func TestRedLockGetsItsNodesAmongHandOvers(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	var history turns
	var stop []func()
	for i := range 2 {
		stop = append(stop,
			contend(t, 8, newClient(t, s, rlock.Options{}).NewLock("order"), history.take(i)))
	}
	for _, c := range []*rlock.Client{
		newClient(t, s, rlock.Options{}), newClient(t, s, rlock.Options{HandOver: rlock.HandOverNone}),
	} {
		// With FsyncAlways a server that has just started counts.
		red := redlock.New(c.NewLock("order")).
			WithOptions(redlock.Options{FsyncAlways: true, NodeTimeout: time.Second})
		for range 3 {
			hold := acquired(t, inBackground(func() (*rlock.Hold, error) {
				return red.TryLock(t.Context(), longWait, longLease)
			}))
			history.take(2)(hold)
			unlock(t, hold)
		}
	}
	for _, enough := range stop {
		enough()
	}
	waitUntilFree(t, s, "order")
}

// A waiter that left is granted the lock, and passes it on.
func TestLockGrantedToNobodyKeepsItsStreak(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		turns     string // and since when
		announced bool
	}{
		"a few":                  {"1 0", false},
		"as many as it may have": {"15 200", true},
		"nobody knows how many":  {"0 0", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			redis := s.Client(t)
			heard := make(chan string, 10)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() {
				_ = redis.Receive(ctx,
					redis.B().Psubscribe().Pattern("redisson_lock__channel:*").Build(),
					func(m rueidis.PubSubMessage) { heard <- m.Message })
			}()
			eventually(t, func() bool {
				n, err := s.Call("PUBSUB", "NUMPAT")
				return err == nil && n == int64(1)
			}, "nobody listens")
			c := newClient(t, s, rlock.Options{})
			hold := take(t, c.NewLock("another"), longLease)
			client, _, _ := strings.Cut(hold.Owner(), ":")
			unlock(t, hold)
			receive(t, heard, "a release that nobody waits for")

			const ghost = ":gone"
			s.Do(t, "HSET", "order", client+ghost, "1")
			s.Do(t, "PEXPIRE", "order", "30000")
			waiter := registersBy(t, s, 1, "order", func() <-chan outcome {
				return lockInBackground(t.Context(), c.NewLock("order"), longLease)
			})
			s.Do(t, "PUBLISH", lua.PairedChannels(lua.Channel("order"), client)[1],
				client+ghost+" 1 0 "+of.turns+" order")
			hold = acquired(t, waiter)
			s.Do(t, "PUBLISH", lua.Channel("order"), "all")
			require.Equal(t, of.announced, receive(t, heard, "the end") != "all")
			unlock(t, hold)
		})
	}
}
