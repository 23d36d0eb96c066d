//go:build redis

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
