package rlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"holdfast/internal/faultproxy"
	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// scene is where the ends of an attempt are tried out: the attempt is made by client, through proxy. The lock is name's;
// where it is held, another client does.
type scene struct {
	server *redistest.Server
	proxy  *faultproxy.Proxy
	client *rlock.Client
	other  *rlock.Client
	lock   *rlock.Lock
}

const sceneLock = "scene"

// stage brings an attempt to a certain point and ends the fault that this took.
type stage struct {
	name string
	// before is called before the attempt, and returns what ends the fault, and is called after the attempt has ended.
	before func(t *testing.T, s *scene) (after func())
	// reached waits until the attempt is there.
	reached func(t *testing.T, s *scene)
}

// stages are all the points at which an attempt can be when its end comes.
var stages = []stage{
	{
		name: "queued behind another waiter of this process",
		before: func(t *testing.T, s *scene) func() {
			hold := take(t, s.other.NewLock(sceneLock), longLease)
			ctx, cancel := context.WithCancel(t.Context())
			head := lockInBackground(ctx, s.lock, longLease)
			awaitListeners(t, s.server, sceneLock, 1)
			awaitGoroutines(t, "(*patience).sleep", 1)
			return func() {
				cancel()
				require.Error(t, result(t, head).err)
				unlock(t, hold)
			}
		},
		reached: func(t *testing.T, _ *scene) { awaitGoroutines(t, "(*spot).advance", 1) },
	},
	{
		name: "subscribing",
		before: func(t *testing.T, s *scene) func() {
			hold := take(t, s.other.NewLock(sceneLock), longLease)
			s.proxy.BlackHoleNew() // the subscription has a connection of its own
			return func() {
				require.Zero(t, subscribers(s.server, sceneLock), "the attempt was subscribed already")
				s.proxy.Pass()
				unlock(t, hold)
			}
		},
		reached: func(t *testing.T, _ *scene) { awaitGoroutines(t, "(*patience).sleep", 1) },
	},
	{
		name: "parked",
		before: func(t *testing.T, s *scene) func() {
			hold := take(t, s.other.NewLock(sceneLock), longLease)
			return func() { unlock(t, hold) }
		},
		reached: func(t *testing.T, s *scene) {
			awaitListeners(t, s.server, sceneLock, 1)
			awaitGoroutines(t, "(*patience).sleep", 1)
		},
	},
	{
		name: "in flight on a server that hangs",
		before: func(t *testing.T, s *scene) func() {
			s.server.Pause(t)
			return func() { s.server.Resume(t) }
		},
		reached: func(t *testing.T, _ *scene) { awaitGoroutines(t, "(*attempt).ask", 1) },
	},
	{
		name: "in flight, executed and not answered",
		before: func(_ *testing.T, s *scene) func() {
			s.proxy.HoldReplies()
			return s.proxy.Pass
		},
		reached: func(t *testing.T, s *scene) {
			eventually(t, func() bool { return exists(s.server, sceneLock) }, "the command was not executed")
		},
	},
}

// onEveryStage runs attempt at every stage: it begins an attempt, waits until it has reached the stage, and ends it. It may
// return what is to be waited for when the fault is over. Then nothing may be left: no key, no channel, no goroutine.
func onEveryStage(t *testing.T, attempt func(t *testing.T, s *scene, reached func()) (finish func())) {
	for _, stage := range stages {
		t.Run(stage.name, func(t *testing.T) {
			s := &scene{server: redistest.Start(t)}
			s.other = newClient(t, s.server, rlock.Options{}, steadyConnection)
			warm(t, s.other, sceneLock)
			s.client, s.proxy = proxied(t, s.server, rlock.Options{}, steadyConnection)
			s.lock = s.client.NewLock(sceneLock)
			warm(t, s.client, sceneLock)
			goroutines := redistest.IgnoreCurrent()

			after := stage.before(t, s)
			finish := attempt(t, s, func() { stage.reached(t, s) })
			after()
			if finish != nil {
				finish()
			}
			awaitEmpty(t, s.server)
			eventually(t, func() bool { return rlock.Seats(s.client) == 0 }, "a seat is left")
			goleak.VerifyNone(t, goroutines...)
		})
	}
}

func TestCancelledContextEndsAnAttemptAnywhereAndLeavesNothing(t *testing.T) {
	onEveryStage(t, func(t *testing.T, s *scene, reached func()) func() {
		ctx, cancel := context.WithCancel(t.Context())
		attempt := lockInBackground(ctx, s.lock, longLease)
		reached()
		cancelled := time.Now()
		cancel()
		o := result(t, attempt)
		require.ErrorIs(t, o.err, context.Canceled)
		require.Less(t, o.at.Sub(cancelled), promptly)
		return nil
	})
}

func TestWaitTimeOutEndsAnAttemptAnywhereAndLeavesNothing(t *testing.T) {
	onEveryStage(t, func(t *testing.T, s *scene, reached func()) func() {
		const wait = 400 * time.Millisecond
		start := time.Now()
		attempt := inBackground(func() (*rlock.Hold, error) { return s.lock.TryLock(t.Context(), wait, longLease) })
		reached()
		o := result(t, attempt)
		require.Error(t, o.err)
		require.NotErrorIs(t, o.err, context.DeadlineExceeded)
		took := o.at.Sub(start)
		require.GreaterOrEqual(t, took, wait)
		require.Less(t, took, wait+promptly)
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
				attempt := lockInBackground(ctx, s.lock, longLease)
				reached()
				start := time.Now()
				closing := make(chan error, 1)
				go func() { closing <- s.client.Close(context.Background()) }()
				o := result(t, attempt)
				require.ErrorIs(t, o.err, rlock.ErrClosed)
				require.Less(t, o.at.Sub(start), promptly)
				return func() { require.NoError(t, receive(t, closing, "Close has not ended")) }
			})
		})
	}
}
