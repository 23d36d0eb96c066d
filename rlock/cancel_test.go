//go:build redis

package rlock_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"holdfast/internal/faultproxy"
	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// scene is where attempts at locks of all kinds are ended, all at the same time. client makes the
// attempts, through proxy. Each lock is named after its kind; to keep it held, another client holds
// its contender.
type scene struct {
	server *redistest.Server
	proxy  *faultproxy.Proxy
	client *rlock.Client
	other  *rlock.Client
	kinds  []kind
}

// begin begins an attempt at each lock.
func (s *scene) begin(attempt func(l *rlock.Lock) <-chan outcome) (attempts []<-chan outcome) {
	for _, k := range s.kinds {
		attempts = append(attempts, attempt(k.lock(s.client, k.name)))
	}
	return attempts
}

// hold has the other client hold all contenders until release is called.
func (s *scene) hold(t *testing.T) (release func()) {
	t.Helper()
	var holds []*rlock.Hold
	for _, k := range s.kinds {
		holds = append(holds, take(t, k.contender(s.other, k.name), longLease))
	}
	return func() {
		for _, hold := range holds {
			unlock(t, hold)
		}
	}
}

// waitForListeners waits until n attempts listen at each lock, or the head of their queue.
func (s *scene) waitForListeners(t *testing.T, n int) {
	t.Helper()
	for _, k := range s.kinds {
		if k.lonely {
			k.waitForListeners(t, s.server, k.name, n)
		} else {
			k.waitForListeners(t, s.server, k.name, min(n, 1))
		}
	}
}

// lonely returns how many of the locks have no local queue.
func (s *scene) lonely() (n int) {
	for _, k := range s.kinds {
		if k.lonely {
			n++
		}
	}
	return n
}

// registrations returns the keys of waiters in Redis. They must not outlive the waiters.
func (s *scene) registrations(t *testing.T) []string {
	t.Helper()
	var keys []string
	for _, pattern := range []string{
		"redisson_lock_queue:*", "redisson_lock_timeout:*", "holdfast_rwlock_writer:*",
	} {
		keys = append(keys, s.server.DoStrings(t, "KEYS", pattern)...)
	}
	return keys
}

// allRegistrations is the number of those keys with one waiter for each lock: two for a fair lock,
// and one for a writer behind readers.
const allRegistrations = 3

// beforeItLapses is how long a waiter's key may stay. A writer's expires after 7 s.
const beforeItLapses = 5 * time.Second

// waitForRegistrations waits until there are n such keys.
func (s *scene) waitForRegistrations(t *testing.T, n int) {
	t.Helper()
	start := time.Now()
	eventually(t, func() bool { return len(s.registrations(t)) == n },
		"registrations of those that wait")
	require.Less(t, time.Since(start), beforeItLapses)
}

// stage brings attempts to a certain point, and ends the fault that this needed.
type stage struct {
	name string
	// before is called before the attempts. It returns what ends the fault, which is called after
	// the attempts have ended.
	before func(t *testing.T, s *scene) (after func())
	// reached waits until the attempts are at that point.
	reached func(t *testing.T, s *scene)
}

// stages are all the points at which an attempt can be when it ends.
var stages = []stage{
	{
		name: "queued behind another waiter of this process",
		before: func(t *testing.T, s *scene) func() {
			release := s.hold(t)
			ctx, cancel := context.WithCancel(t.Context())
			heads := s.begin(
				func(l *rlock.Lock) <-chan outcome { return lockInBackground(ctx, l, longLease) })
			s.waitForListeners(t, 1)
			waitForGoroutines(t, "rlock.(*attempt).park", len(s.kinds))
			return func() {
				cancel()
				for _, head := range heads {
					require.Error(t, result(t, head).Err)
				}
				s.waitForRegistrations(t, 0)
				release()
			}
		},
		reached: func(t *testing.T, s *scene) {
			s.waitForListeners(t, 2)
			waitForGoroutines(t, "rlock.(*attempt).park", len(s.kinds)+s.lonely())
			waitForGoroutines(t, "internal/waitqueue.(*Waiter[...]).Wait(", len(s.kinds)-s.lonely())
		},
	},
	{
		name: "subscribing",
		before: func(t *testing.T, s *scene) func() {
			release := s.hold(t)
			s.proxy.BlackHoleNew() // the subscription has its own connection
			return func() {
				for _, k := range s.kinds {
					require.Zero(t, k.listeners(s.server, k.name),
						"the attempt was subscribed already")
				}
				s.waitForRegistrations(t, 0)
				s.proxy.Pass()
				release()
			}
		},
		reached: func(t *testing.T, s *scene) {
			waitForGoroutines(t, "rlock.(*attempt).park", len(s.kinds))
			s.waitForRegistrations(t, allRegistrations)
		},
	},
	{
		name: "parked",
		before: func(t *testing.T, s *scene) func() {
			release := s.hold(t)
			return func() {
				s.waitForRegistrations(t, 0)
				release()
			}
		},
		reached: func(t *testing.T, s *scene) {
			s.waitForListeners(t, 1)
			waitForGoroutines(t, "rlock.(*attempt).park", len(s.kinds))
			s.waitForRegistrations(t, allRegistrations)
		},
	},
	{
		name: "in flight on a server that hangs",
		before: func(t *testing.T, s *scene) func() {
			s.server.Pause(t)
			return func() { s.server.Resume(t) }
		},
		reached: func(t *testing.T, s *scene) {
			waitForGoroutines(t, "rlock.(*attempt).try", len(s.kinds))
		},
	},
	{
		name: "in flight, executed and not replied to",
		before: func(_ *testing.T, s *scene) func() {
			s.proxy.HoldReplies()
			return s.proxy.Pass
		},
		reached: func(t *testing.T, s *scene) {
			for _, k := range s.kinds {
				eventually(t, func() bool { return exists(s.server, k.name) },
					"the command was not executed")
			}
		},
	},
	{
		name: "in flight behind a holder, on a server that hangs",
		before: func(t *testing.T, s *scene) func() {
			release := s.hold(t)
			before := calls(s.server, "evalsha")
			s.server.Pause(t)
			return func() {
				s.server.Resume(t)
				eventually(t,
					func() bool { return calls(s.server, "evalsha") >= before+len(s.kinds) },
					"the commands were not executed")
				s.waitForRegistrations(t, 0)
				release()
			}
		},
		reached: func(t *testing.T, s *scene) {
			waitForGoroutines(t, "rlock.(*attempt).try", len(s.kinds))
		},
	},
	{
		name: "in flight behind a holder, executed and not replied to",
		before: func(t *testing.T, s *scene) func() {
			release := s.hold(t)
			s.proxy.HoldReplies()
			return func() {
				s.proxy.Pass()
				s.waitForRegistrations(t, 0)
				release()
			}
		},
		reached: func(t *testing.T, s *scene) { s.waitForRegistrations(t, allRegistrations) },
	},
}

// onEveryStage runs attempts at every stage: it begins one at each lock, waits until they have
// reached the stage, and ends them. end may return what to wait for when the fault is over. Then
// nothing may be left: no key, no channel, no goroutine.
func onEveryStage(
	t *testing.T, attempts func(t *testing.T, s *scene, reached func()) (finish func()),
) {
	for _, stage := range stages {
		t.Run(stage.name, func(t *testing.T) {
			s := &scene{server: redistest.Start(t), kinds: contests()}
			s.other = newClient(t, s.server, anonymous, steadyConnection)
			s.client, s.proxy = proxied(t, s.server, rlock.Options{}, steadyConnection)
			for _, k := range s.kinds {
				k.warm(t, s.other, k.name)
				k.warm(t, s.client, k.name)
			}
			goroutines := redistest.IgnoreCurrent()

			after := stage.before(t, s)
			finish := attempts(t, s, func() { stage.reached(t, s) })
			after()
			if finish != nil {
				finish()
			}
			waitForNothingLeft(t, s.server)
			s.waitForRegistrations(t, 0)
			eventually(t, func() bool { return rlock.Sessions(s.client) == 0 }, "a seat is left")
			goleak.VerifyNone(t, append(goroutines, unoccupied)...)
		})
	}
}

// unoccupied are goroutines that a client keeps for its next commands. They do nothing, and are no
// leak before it is closed.
var unoccupied = goleak.IgnoreTopFunction("holdfast/internal/wait.(*Group).work")

func TestCancelledContextEndsAnAttemptAnywhereAndLeavesNothing(t *testing.T) {
	onEveryStage(t, func(t *testing.T, s *scene, reached func()) func() {
		ctx, cancel := context.WithCancel(t.Context())
		attempts := s.begin(
			func(l *rlock.Lock) <-chan outcome { return lockInBackground(ctx, l, longLease) })
		reached()
		cancelled := time.Now()
		cancel()
		for i, attempt := range attempts {
			o := result(t, attempt)
			require.ErrorIs(t, o.Err, context.Canceled)
			require.Less(t, o.At.Sub(cancelled), promptly, s.kinds[i].name)
		}
		return nil
	})
}

func TestWaitTimeOutEndsAnAttemptAnywhereAndLeavesNothing(t *testing.T) {
	onEveryStage(t, func(t *testing.T, s *scene, reached func()) func() {
		const wait = time.Second
		start := time.Now()
		attempts := s.begin(func(l *rlock.Lock) <-chan outcome {
			return inBackground(
				func() (*rlock.Hold, error) { return l.TryLock(t.Context(), wait, longLease) })
		})
		reached()
		for i, attempt := range attempts {
			o := result(t, attempt)
			require.Error(t, o.Err)
			require.NotErrorIs(t, o.Err, context.DeadlineExceeded)
			took := o.At.Sub(start)
			require.GreaterOrEqual(t, took, wait)
			require.Less(t, took, wait+promptly, s.kinds[i].name)
		}
		return nil
	})
}

func TestCloseEndsAnAttemptAnywhereAndLeavesNothing(t *testing.T) {
	for _, kind := range []string{"a context that can end", "a context that cannot end"} {
		t.Run(kind, func(t *testing.T) {
			onEveryStage(t, func(t *testing.T, s *scene, reached func()) func() {
				ctx := t.Context()
				if kind == "a context that cannot end" {
					ctx = context.Background()
				}
				within := promptly
				if ctx == context.Background() && strings.Contains(t.Name(), "in_flight") {
					// With a context that cannot end, a caller may send the command itself, and
					// then stays for the reply.
					within += 3 * time.Second // Options.CommandTimeout
				}
				attempts := s.begin(
					func(l *rlock.Lock) <-chan outcome { return lockInBackground(ctx, l, longLease) },
				)
				reached()
				start := time.Now()
				closing := make(chan error, 1)
				go func() { closing <- s.client.Close(context.Background()) }()
				for i, attempt := range attempts {
					o := result(t, attempt)
					require.ErrorIs(t, o.Err, rlock.ErrClosed)
					require.Less(t, o.At.Sub(start), within, s.kinds[i].name)
				}
				return func() { require.NoError(t, receive(t, closing, "Close has not returned")) }
			})
		})
	}
}
