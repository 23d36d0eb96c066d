package holdfastotel_test

import (
	"cmp"
	"context"
	"log/slog"
	"runtime"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"holdfast/internal/locktest"
	"holdfast/internal/logtest"
	"holdfast/internal/redistest"
	"holdfast/multilock"
	holdfastotel "holdfast/otel"
	"holdfast/redlock"
	"holdfast/rlock"
)

// These tests cause each signal with real locks on real servers.

// client returns a client of a server that tells s.
func (s *signals) client(t *testing.T, server *redistest.Server, o rlock.Options,
	mutators ...func(*rueidis.ClientOption)) *rlock.Client {
	o.Tracer = s
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	c, err := rlock.New(server.Client(t, mutators...), o)
	require.NoError(t, err)
	t.Cleanup(func() { locktest.CloseClient(t, c) })
	return c
}

// of returns as text the attributes of a lock on a server, and more.
func of(kind string, server *redistest.Server, more ...attribute.KeyValue) string {
	return text(attribute.NewSet(append(more, holdfastotel.AttrKind.String(kind),
		holdfastotel.AttrServer.String(server.Addr()))...))
}

// calls returns how many calls ended in a way.
func (s *signals) calls(t *testing.T, series string) uint64 {
	return s.histogram(t, "holdfast.lock.acquire.duration")[series].Count
}

// eventually waits until a sum has a value: what is told in the background may be late.
func (s *signals) eventually(t *testing.T, name, series string, want int64) {
	t.Helper()
	locktest.Eventually(t, func() bool { return s.sum(t, name)[series] == want }, name)
}

// hold returns the span of the last hold that ended.
func (s *signals) hold(t *testing.T) (last sdk.ReadOnlySpan) {
	t.Helper()
	locktest.Eventually(t, func() bool {
		for _, span := range s.spans.Ended() {
			if span.Name() == "lock hold" {
				last = span
			}
		}
		return last != nil
	}, "the span of a hold ends")
	return last
}

func TestFreeLockAndReentry(t *testing.T) {
	t.Parallel()
	server, s := redistest.Start(t), newSignals()
	c := s.client(t, server, rlock.Options{})
	lock := c.NewFencedLock("order")
	outer := locktest.Acquire(t, lock, rlock.Watchdog)
	inner := locktest.AcquireWith(outer.Context(), t, lock, rlock.Watchdog)
	require.EqualValues(t, 1, s.calls(t, of("fenced", server, outcome("acquired"), how("free"))))
	require.EqualValues(t, 1, s.calls(t, of("fenced", server, outcome("acquired"), how("reentered"))))
	require.Equal(t, map[string]int64{of("fenced", server): 1}, s.sum(t, "holdfast.lock.held"))
	require.Equal(t, trace.SpanContextFromContext(outer.Context()),
		trace.SpanContextFromContext(inner.Context()), "nested holds have no span of their own")

	locktest.Unlock(t, inner)
	require.Empty(t, s.histogram(t, "holdfast.lock.hold.duration"))
	locktest.Unlock(t, outer)
	require.Equal(t, map[string]int64{of("fenced", server): 0}, s.sum(t, "holdfast.lock.held"))
	require.EqualValues(t, 1, s.histogram(t, "holdfast.lock.hold.duration")[of("fenced", server,
		outcome("released"))].Count)
	require.EqualValues(t, 1,
		s.histogram(t, "holdfast.lock.lease.utilization")[of("fenced", server)].Count)
	attributes := s.hold(t).Attributes()
	require.Contains(t, attributes, holdfastotel.AttrOwner.String(outer.Owner()))
	require.Contains(t, attributes, holdfastotel.AttrToken.Int64(outer.Token()))
	require.Contains(t, attributes, holdfastotel.AttrLease.Float64(30))
}

func TestHandOverInAProcess(t *testing.T) {
	t.Parallel()
	server, s := redistest.Start(t), newSignals()
	c := s.client(t, server, rlock.Options{})
	lock := c.NewLock("order")
	first := locktest.Acquire(t, lock, rlock.Watchdog)
	var waiters []<-chan locktest.Outcome
	for n := range int64(2) {
		waiters = append(waiters, locktest.LockInBackground(t.Context(), lock, rlock.Watchdog))
		s.eventually(t, "holdfast.lock.waiting", of("reentrant", server), n+1)
	}
	locktest.Unlock(t, first)
	second := locktest.Acquired(t, waiters[0])
	locktest.Unlock(t, second)
	locktest.Unlock(t, locktest.Acquired(t, waiters[1]))
	scope := holdfastotel.AttrScope.String("in_process")
	// The head may have been about to ask when the lock was released.
	require.Positive(t, s.sum(t, "holdfast.lock.handovers")[of("reentrant", server, scope)])
	require.Positive(t, s.calls(t, of("reentrant", server, outcome("acquired"), how("handed_over"))))
	require.Zero(t, s.sum(t, "holdfast.lock.waiting")[of("reentrant", server)])
	requireEvents(t, s, "queued", "handed over")
}

// requireEvents requires that a call had these events first and last.
func requireEvents(t *testing.T, s *signals, first, last string) {
	t.Helper()
	for _, span := range s.spans.Ended() {
		names := events(span)
		if len(names) > 1 && names[0] == first && names[len(names)-1] == last {
			return
		}
	}
	require.FailNow(t, "no call was "+first+" and then "+last)
}

func TestGrantBetweenProcesses(t *testing.T) {
	t.Parallel()
	server, s := redistest.Start(t), newSignals()
	a, b := s.client(t, server, rlock.Options{}), s.client(t, server, rlock.Options{})
	first := locktest.Acquire(t, a.NewLock("order"), rlock.Watchdog)
	waiter := locktest.LockInBackground(t.Context(), b.NewLock("order"), rlock.Watchdog)
	locktest.Eventually(t, func() bool {
		return server.DoInt(t, "ZCARD", "holdfast_lock_waiters:{order}") == 1
	}, "the waiter is registered")
	locktest.Unlock(t, first)
	locktest.Unlock(t, locktest.Acquired(t, waiter))
	scope := holdfastotel.AttrScope.String("between_processes")
	require.Equal(t, map[string]int64{of("reentrant", server, scope): 1},
		s.sum(t, "holdfast.lock.handovers"))
	require.EqualValues(t, 1, s.calls(t, of("reentrant", server, outcome("acquired"), how("granted"))))
	requireEvents(t, s, "queued", "granted")
}

func TestGiveUpAndCancel(t *testing.T) {
	t.Parallel()
	server, s := redistest.Start(t), newSignals()
	c := s.client(t, server, rlock.Options{})
	lock := c.NewFairLock("order")
	hold := locktest.Acquire(t, lock, rlock.Watchdog)
	_, err := lock.TryLock(t.Context(), 300*time.Millisecond, rlock.Watchdog)
	require.ErrorIs(t, err, rlock.ErrNotAcquired)
	require.EqualValues(t, 1, s.calls(t, of("fair", server, outcome("not_acquired"),
		errorType("not_acquired"))))

	ctx, cancel := context.WithCancel(t.Context())
	waiter := locktest.LockInBackground(ctx, lock, rlock.Watchdog)
	s.eventually(t, "holdfast.lock.waiting", of("fair", server), 1)
	cancel()
	require.ErrorIs(t, locktest.Result(t, waiter).Err, context.Canceled)
	late, end := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer end()
	_, err = lock.Lock(late, rlock.Watchdog)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	for _, why := range []string{"canceled", "deadline_exceeded"} {
		require.EqualValues(t, 1,
			s.calls(t, of("fair", server, outcome("canceled"), errorType(why))), why)
	}
	for _, span := range s.spans.Ended() {
		require.Equal(t, codes.Unset, span.Status().Code, "expected answers")
	}
	require.Zero(t, s.sum(t, "holdfast.lock.waiting")[of("fair", server)])
	locktest.Unlock(t, hold)
}

func TestMistakesAndClosedClients(t *testing.T) {
	t.Parallel()
	server, s := redistest.Start(t), newSignals()
	c := s.client(t, server, rlock.Options{})
	lock := c.NewReadWriteLock("order")
	reader := locktest.Acquire(t, lock.Read(), rlock.Watchdog)
	_, err := lock.Write().TryLock(reader.Context(), rlock.NoWait, rlock.Watchdog)
	require.ErrorIs(t, err, rlock.ErrUpgrade)
	require.EqualValues(t, 1, s.calls(t, of("write", server, outcome("failed"), errorType("upgrade"))))
	_, err = lock.Read().TryLock(t.Context(), rlock.NoWait, 0)
	require.ErrorIs(t, err, rlock.ErrInvalid)
	locktest.CloseClient(t, c)
	s.eventually(t, "holdfast.lock.held", of("read", server), 0)
	require.EqualValues(t, 1, s.histogram(t, "holdfast.lock.hold.duration")[of("read", server,
		outcome("closed"), errorType("closed"))].Count)
	require.Empty(t, s.lost(t))
}

func TestDetachedHoldIsLeftAndAttached(t *testing.T) {
	t.Parallel()
	server, s := redistest.Start(t), newSignals()
	a, b := s.client(t, server, rlock.Options{}), s.client(t, server, rlock.Options{})
	detached, err := locktest.Acquire(t, a.NewLock("order"), time.Minute).Detach()
	require.NoError(t, err)
	require.EqualValues(t, 1, s.histogram(t, "holdfast.lock.hold.duration")[of("reentrant", server,
		outcome("left"))].Count)
	require.Empty(t, s.histogram(t, "holdfast.lock.deadline.margin"))
	hold, err := b.Attach(t.Context(), detached, time.Minute)
	require.NoError(t, err)
	require.EqualValues(t, 1,
		s.calls(t, of("reentrant", server, outcome("acquired"), how("attached"))))
	require.Equal(t, map[string]int64{of("reentrant", server): 1}, s.sum(t, "holdfast.lock.held"))
	locktest.Unlock(t, hold)
}

func TestLossOfALockThatIsGone(t *testing.T) {
	t.Parallel()
	server, s := redistest.Start(t), newSignals()
	c := s.client(t, server, rlock.Options{WatchdogLease: 2 * time.Second})
	hold := locktest.Acquire(t, c.NewLock("order"), rlock.Watchdog)
	server.Do(t, "DEL", "order")
	locktest.Receive(t, hold.Context().Done(), "the hold is lost")
	s.eventually(t, "holdfast.lock.lost", of("reentrant", server, errorType("gone")), 1)
	require.EqualValues(t, 1, s.histogram(t, "holdfast.lock.hold.duration")[of("reentrant", server,
		outcome("lost"), errorType("gone"))].Count)
	require.Equal(t, map[string]int64{of("reentrant", server): 0}, s.sum(t, "holdfast.lock.held"))
	span := s.hold(t)
	require.Equal(t, codes.Error, span.Status().Code)
	require.Contains(t, span.Status().Description, "lost")
	require.Contains(t, span.Attributes(), errorType("gone"))
	require.ErrorIs(t, hold.Unlock(t.Context()), rlock.ErrLost)
	require.Len(t, s.lost(t), 1)
}

func TestLossByAServerThatHangs(t *testing.T) {
	t.Parallel()
	server, s := redistest.Start(t), newSignals()
	c := s.client(t, server, rlock.Options{WatchdogLease: time.Second,
		CommandTimeout: 500 * time.Millisecond})
	hold := locktest.Acquire(t, c.NewLock("order"), rlock.Watchdog)
	server.Pause(t)
	locktest.Receive(t, hold.Context().Done(), "the lease ends")
	s.eventually(t, "holdfast.lock.lost", of("reentrant", server, errorType("expired")), 1)
	server.Resume(t)
	failures := s.sum(t, "holdfast.lock.renewal.failures")
	require.Positive(t, failures[of("reentrant", server, errorType("no_reply"))], "%v", failures)
	span := s.hold(t)
	require.Equal(t, codes.Error, span.Status().Code)
	require.Contains(t, events(span), "renewal failed")
	used := s.histogram(t, "holdfast.lock.lease.utilization")[of("reentrant", server)]
	largest, _ := used.Max.Value()
	require.InDelta(t, 1, largest, 0, "of what was lost by time all is used up")
}

func TestRefusedRenewal(t *testing.T) {
	t.Parallel()
	server, s := redistest.Start(t, redistest.WithUser("app", "secret")), newSignals()
	c := s.client(t, server, rlock.Options{WatchdogLease: time.Second})
	hold := locktest.Acquire(t, c.NewLock("order"), rlock.Watchdog)
	server.Do(t, "ACL", "SETUSER", "app", "-@scripting")
	refused := of("reentrant", server, errorType("server_NOPERM"))
	locktest.Eventually(t, func() bool {
		return s.sum(t, "holdfast.lock.renewal.failures")[refused] > 0
	}, "a renewal is refused")
	server.Do(t, "ACL", "SETUSER", "app", "+@all")
	if err := hold.Unlock(t.Context()); err != nil {
		require.ErrorIs(t, err, rlock.ErrLost, "on a busy machine")
	}
	span := s.hold(t)
	require.Contains(t, events(span), "renewal failed")
	require.Contains(t, span.Events()[0].Attributes, errorType("server_NOPERM"))
}

func TestRefusedAcquisitionAndRelease(t *testing.T) {
	t.Parallel()
	server, s := redistest.Start(t, redistest.WithUser("app", "secret")), newSignals()
	c := s.client(t, server, rlock.Options{})
	hold := locktest.Acquire(t, c.NewLock("order"), time.Minute)
	server.Do(t, "ACL", "SETUSER", "app", "-@scripting")
	_, err := c.NewLock("other").TryLock(t.Context(), rlock.NoWait, rlock.Watchdog)
	require.Error(t, err)
	require.EqualValues(t, 1, s.calls(t, of("reentrant", server, outcome("failed"),
		errorType("server_NOPERM"))))
	require.Error(t, hold.Unlock(t.Context()))
	require.EqualValues(t, 1, s.histogram(t, "holdfast.lock.hold.duration")[of("reentrant", server,
		outcome("unconfirmed"), errorType("server_NOPERM"))].Count)
	require.Equal(t, codes.Error, s.hold(t).Status().Code)
	server.Do(t, "ACL", "SETUSER", "app", "+@all")
}

func TestMultiLockIsToldAsAWholeAndInParts(t *testing.T) {
	t.Parallel()
	server, s := redistest.Start(t), newSignals()
	c := s.client(t, server, rlock.Options{})
	ctx, caller := s.traces.Tracer("test").Start(t.Context(), "request")
	hold := locktest.AcquireWith(ctx, t, multilock.New(c.NewLock("a"), c.NewLock("b")),
		rlock.Watchdog)
	require.Equal(t, map[string]int64{of("multilock", server): 1, of("reentrant", server): 2},
		s.sum(t, "holdfast.lock.held"))
	locktest.Unlock(t, hold)
	caller.End()
	s.eventually(t, "holdfast.lock.held", of("reentrant", server), 0)
	s.eventually(t, "holdfast.lock.held", of("multilock", server), 0)
	require.EqualValues(t, 2, s.calls(t, of("reentrant", server, outcome("acquired"), how("free"))))
	require.EqualValues(t, 1, s.calls(t, of("multilock", server, outcome("acquired"), how("free"))))
	var whole trace.SpanID
	for _, span := range s.spans.Ended() {
		if span.Name() == "lock acquire" && span.Parent().SpanID() == caller.SpanContext().SpanID() {
			whole = span.SpanContext().SpanID()
		}
	}
	parts := 0
	for _, span := range s.spans.Ended() {
		switch {
		case span.Name() == "lock hold":
			require.Equal(t, caller.SpanContext(), span.Parent())
		case span.Parent().SpanID() == whole:
			parts++
		}
	}
	require.Equal(t, 2, parts, "the parts are acquired inside of the whole")
}

func TestNodeOfARedLockThatHangs(t *testing.T) {
	t.Parallel()
	servers, s := redistest.StartAll(t, 3), newSignals()
	var locks []*rlock.Lock
	for _, server := range servers {
		c := s.client(t, server, rlock.Options{}, func(o *rueidis.ClientOption) {
			o.ConnWriteTimeout = 500 * time.Millisecond // after that rueidis gives a node up
		})
		locks = append(locks, c.NewLock("order"))
	}
	lock := redlock.New(locks...).WithOptions(redlock.Options{
		NodeTimeout: time.Second, FsyncAlways: true})
	servers[2].Pause(t)
	locktest.Unlock(t, locktest.Acquire(t, lock, time.Minute))
	require.EqualValues(t, 1, s.rounds(t, "quorum"))
	locktest.Eventually(t, func() bool { return len(s.failures(t)) > 0 }, "the failure is told")
	for failure := range s.failures(t) {
		require.Contains(t, failure, "holdfast.server="+servers[2].Addr())
		require.Contains(t, failure, "error.type=no_reply")
	}

	servers[1].Pause(t)
	s.spans.Reset()
	_, err := lock.TryLock(t.Context(), rlock.NoWait, time.Minute)
	require.ErrorIs(t, err, redlock.ErrNoQuorum)
	require.EqualValues(t, 1, s.rounds(t, "no_quorum"))
	acquire := s.ended(t, "lock acquire")
	require.Equal(t, codes.Error, acquire.Status().Code)
	require.Contains(t, acquire.Attributes(), errorType("no_quorum"))
	round := attribute.NewSet(acquire.Events()[0].Attributes...)
	granted, _ := round.Value(holdfastotel.AttrGranted)
	require.EqualValues(t, 1, granted.AsInt64())
	refused, _ := round.Value(holdfastotel.AttrRefused)
	require.Len(t, refused.AsStringSlice(), 2)
	for _, node := range refused.AsStringSlice() {
		require.NotContains(t, node, servers[0].Addr())
	}
	servers[1].Resume(t)
	servers[2].Resume(t)
}

func TestNodeThatDoesNotHoldARedLockAnyMore(t *testing.T) {
	t.Parallel()
	servers, s := redistest.StartAll(t, 3), newSignals()
	var locks []*rlock.Lock
	for _, server := range servers {
		c := s.client(t, server, rlock.Options{WatchdogLease: time.Second})
		locks = append(locks, c.NewLock("order"))
	}
	hold := locktest.Acquire(t, redlock.New(locks...).WithOptions(redlock.Options{FsyncAlways: true}),
		rlock.Watchdog)
	forget := func(nodes ...*redistest.Server) {
		for _, node := range nodes { // again and again: they rejoin
			node.Do(t, "DEL", "order")
		}
	}
	failure := text(attribute.NewSet(holdfastotel.AttrOperation.String("hold"), errorType("gone"),
		holdfastotel.AttrServer.String(servers[0].Addr())))
	locktest.Eventually(t, func() bool {
		forget(servers[0])
		return s.failures(t)[failure] > 0
	}, "the node is told")
	require.NoError(t, hold.Err(), "a quorum is left")
	locktest.Eventually(t, func() bool {
		forget(servers[:2]...)
		return hold.Err() != nil
	}, "the hold is lost")
	locktest.Eventually(t, func() bool { return len(s.lost(t)) == 1 }, "lost")
	for series := range s.lost(t) {
		require.Contains(t, series, "holdfast.lock.kind=redlock")
	}
	require.Equal(t, codes.Error, s.hold(t).Status().Code)
}

// failures returns what nodes of RedLocks did not do.
func (s *signals) failures(t *testing.T) map[string]int64 {
	return s.sum(t, "holdfast.redlock.node.failures")
}

// rounds returns the number of rounds with an outcome.
func (s *signals) rounds(t *testing.T, of string) uint64 {
	return s.histogram(t, "holdfast.redlock.round.duration")[text(attribute.NewSet(outcome(of)))].Count
}

// Neither spans nor exemplars keep the contexts of callers, with which others could release the
// lock.
func TestDroppedHoldIsNoticed(t *testing.T) {
	t.Parallel()
	server, s := redistest.Start(t), newSignals()
	var log logtest.Lines
	c := s.client(t, server, rlock.Options{WatchdogLease: 2 * time.Second, Logger: log.Logger()})
	locktest.Dropping(func() {
		ctx, caller := s.traces.Tracer("test").Start(rlock.WithOwner(t.Context()), "request")
		locktest.AcquireUnkept(ctx, t, c.NewLock("order")).Context()
		caller.End()
	})
	locktest.Eventually(t, func() bool {
		runtime.GC()
		return len(log.With("a hold was dropped without Unlock")) == 1
	}, "not noticed")
	freed, err := c.NewLock("order").ForceUnlock(t.Context())
	require.NoError(t, err)
	require.True(t, freed, "it goes on being renewed")
	s.eventually(t, "holdfast.lock.held", of("reentrant", server), 0)
	s.hold(t)
}
