package rlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

func TestFairQueueSurvivesLostReplies(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	holder := newClient(t, s, rlock.Options{}).NewFairLock("job")
	// A busy machine may need seconds for an operation that is tried three times.
	c, p := proxied(t, s, rlock.Options{CommandTimeout: longWait})
	lock := c.NewFairLock("job")
	kindNamed("fair").warm(t, c, "job")
	kindNamed("fair").warm(t, newClient(t, s, rlock.Options{}), "job")
	hold := take(t, holder, longLease)

	cut := p.CutReply(script(t, "fair_acquire.lua"), 2) // of the queueing
	behindIt := waitInTurn(t, s, lock)[0]
	eventually(t, func() bool { return cut.Done() == 2 }, "not tried again")
	first := waitForFairQueue(t, s, 1)
	last := waitInTurn(t, s, holder)[0]
	queue := waitForFairQueue(t, s, 2)
	require.Equal(t, first[0], queue[0], "it lost its place")

	cut = p.CutReply(script(t, "fair_acquire.lua"), 1) // of the taking
	unlock(t, hold)
	hold = acquired(t, behindIt.done)
	require.Equal(t, 1, cut.Done())
	require.Equal(t, first[0], hold.Owner())
	require.Equal(t, map[string]string{first[0]: "1"}, s.DoMap(t, "HGETALL", "job"))
	require.Equal(t, queue[1:], s.DoStrings(t, "LRANGE", fairQueue, "0", "-1"))

	cut = p.CutReply(script(t, "fair_release.lua"), 2) // of the release
	unlock(t, hold)
	require.Equal(t, 2, cut.Done())
	hold = acquired(t, last.done)

	gone := waitInTurn(t, s, lock)[0]
	behind := waitInTurn(t, s, holder)[0]
	before := fairScore(t, s, waitForFairQueue(t, s, 2)[1])
	cut = p.CutReply(script(t, "fair_release.lua"), 2) // of the leaving
	gone.leave()
	require.ErrorIs(t, result(t, gone.done).Err, context.Canceled)
	eventually(t, func() bool { return cut.Done() == 2 }, "not tried again")
	after := fairScore(t, s, waitForFairQueue(t, s, 1)[0])
	require.InDelta(t, 5*time.Minute.Milliseconds(), before-after, 20_000,
		"the window was not taken off once")
	unlock(t, hold)
	unlock(t, acquired(t, behind.done))
	requireNothingFairLeft(t, s)
}

// A server without persistence forgets the queue. Its waiters queue again.
func TestFairWaitersOutlastARestart(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	lock := newClient(t, s, rlock.Options{}).NewFairLock("job")
	take(t, lock, longLease)
	waiters := waitInTurn(t, s, lock, lock, lock)
	s.Kill(t)
	s.Restart(t)
	served := make(chan outcome, len(waiters))
	for _, w := range waiters {
		go func() {
			o := <-w.done
			if o.Err == nil {
				o.Err = o.Hold.Unlock(t.Context())
			}
			served <- o
		}()
	}
	for range waiters {
		require.NoError(t, receive(t, served, "not served after the restart").Err)
	}
	requireNothingFairLeft(t, s)
}

// Nothing in Redis may make waiters ask again and again: a waiter asks when it comes, when it
// listens, and then every 5 s.
func TestFairWaitersDoNotSpin(t *testing.T) {
	t.Parallel()
	for name, arrange := range map[string]func(*testing.T, *redistest.Server){
		"held": func(t *testing.T, s *redistest.Server) {
			plant(t, s, "job", map[string]string{"java:1": "1"})
			s.Do(t, "PEXPIRE", "job", "60000")
		},
		"without an expiry": func(t *testing.T, s *redistest.Server) {
			plant(t, s, "job", map[string]string{"java:1": "1"})
			s.Do(t, "PERSIST", "job")
		},
		"held, with a head that is dead": func(t *testing.T, s *redistest.Server) {
			plant(t, s, "job", map[string]string{"java:1": "1"})
			s.Do(t, "PEXPIRE", "job", "60000")
			plantHead(t, s, "java:2")
		},
		"free, with a head that is dead": func(t *testing.T, s *redistest.Server) {
			plantHead(t, s, "java:2")
		},
		"free, with a head that listens and does nothing": func(t *testing.T, s *redistest.Server) {
			plantHead(t, s, "java:2")
			redis := s.Client(t)
			ctx, cancel := context.WithCancel(t.Context())
			t.Cleanup(cancel)
			listen := redis.B().Subscribe().Channel(channelOf("job") + ":java:2").Build()
			go func() { _ = redis.Receive(ctx, listen, func(rueidis.PubSubMessage) {}) }()
			eventually(t, func() bool { return fairListeners(t, s, "java:2") == 1 }, "it listens")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const waiters = 20
			s := redistest.Start(t)
			c := newClient(t, s, rlock.Options{})
			kindNamed("fair").warm(t, c, "warm")
			arrange(t, s)
			monitor := s.Monitor(t)
			ctx, cancel := context.WithCancel(t.Context())
			done := make([]<-chan outcome, waiters)
			for i := range done {
				done[i] = lockInBackground(ctx, c.NewFairLock("job"), longLease)
			}
			asked := 0
			count := func() {
				for _, verb := range verbs(monitor.Commands(t)) {
					if verb == "evalsha" || verb == "eval" {
						asked++
					}
				}
			}
			eventually(t, func() bool {
				count()
				return asked >= 2*waiters
			}, "each has asked, and once more when it listens")
			<-time.After(time.Second)
			count()
			t.Log(asked, "requests")
			// Each may ask once more, because a first request may find the lock free with another
			// waiter at the head; and once when the head is dropped.
			require.LessOrEqual(t, asked, 4*waiters)
			cancel()
			for _, d := range done {
				if o := result(t, d); o.Err == nil {
					unlock(t, o.Hold) // the head was dropped
				} else {
					require.ErrorIs(t, o.Err, rlock.ErrNotAcquired)
				}
			}
		})
	}
}
