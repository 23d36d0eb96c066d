package holdfastotel_test

import (
	"cmp"
	"log/slog"
	"runtime"
	"slices"
	"testing"
	"time"

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
	"holdfast/rlock"
)

// These tests cause each signal with real locks on real servers.

// client returns a client of a server that tells s.
func (s *signals) client(t *testing.T, server *redistest.Server, o rlock.Options) *rlock.Client {
	o.Tracer = s
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	c, err := rlock.New(server.Client(t), o)
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
	require.True(t, slices.ContainsFunc(s.spans.Ended(), func(span sdk.ReadOnlySpan) bool {
		names := events(span)
		return len(names) > 1 && names[0] == "queued" && names[len(names)-1] == "granted"
	}))
}

func TestLossOfALockThatIsGone(t *testing.T) {
	t.Parallel()
	server, s := redistest.Start(t), newSignals()
	c := s.client(t, server, rlock.Options{WatchdogLease: 9 * time.Second})
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
	require.ErrorIs(t, hold.Unlock(), rlock.ErrLost)
	require.Len(t, s.lost(t), 1)
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

// Neither spans nor exemplars keep the contexts of callers, with which others could release the
// lock.
func TestDroppedHoldIsNoticed(t *testing.T) {
	t.Parallel()
	server, s := redistest.Start(t), newSignals()
	var log logtest.Lines
	c := s.client(t, server, rlock.Options{WatchdogLease: 4 * time.Second, Logger: log.Logger()})
	locktest.Dropping(func() {
		ctx, caller := s.traces.Tracer("test").Start(rlock.WithOwner(t.Context()), "request")
		locktest.AcquireUnkept(ctx, t, c.NewLock("order")).Context()
		caller.End()
	})
	locktest.Eventually(t, func() bool {
		runtime.GC()
		return len(log.With("garbage-collected without Unlock")) == 1
	}, "not noticed")
	freed, err := c.NewLock("order").ForceUnlock(t.Context())
	require.NoError(t, err)
	require.True(t, freed, "it goes on being renewed")
	s.eventually(t, "holdfast.lock.held", of("reentrant", server), 0)
	s.hold(t)
}
