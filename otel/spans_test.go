package holdfastotel_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	holdfastotel "holdfast/otel"
	"holdfast/rlock"
)

func TestSpansOfACallAndItsHoldAreLinkedChildrenOfTheCaller(t *testing.T) {
	s := newSignals()
	since := time.Now().Add(-time.Second)
	ctx, caller := s.traces.Tracer("test").Start(t.Context(), "request")
	call := s.AcquireStart(ctx, rlock.AcquireStart{Lock: order, Since: since,
		Wait: 2 * time.Second, Lease: rlock.Lease(10 * time.Second)})
	held, hold := s.acquired(call, order, rlock.Free, false)
	inside := trace.SpanContextFromContext(held)
	hold.HoldEnd(end(order, nil, time.Second))
	caller.End()

	acquire, kept := s.ended(t, "lock acquire"), s.ended(t, "lock hold")
	require.Equal(t, caller.SpanContext().SpanID(), acquire.Parent().SpanID())
	require.Equal(t, caller.SpanContext().SpanID(), kept.Parent().SpanID())
	require.Equal(t, trace.SpanKindInternal, acquire.SpanKind())
	require.Equal(t, trace.SpanKindInternal, kept.SpanKind())
	require.True(t, since.Equal(acquire.StartTime()))
	require.Equal(t, kept.SpanContext(), inside, "what is done under the lock is inside the hold")
	require.Equal(t, kept.SpanContext(), acquire.Links()[0].SpanContext)
	require.Equal(t, acquire.SpanContext(), kept.Links()[0].SpanContext)
	require.ElementsMatch(t, []attribute.KeyValue{
		attribute.String("holdfast.lock.name", "order:4711"),
		attribute.String("holdfast.lock.kind", "fenced"),
		attribute.String("holdfast.server", "redis:6379"),
		attribute.Float64("holdfast.lock.wait", 2),
		attribute.Float64("holdfast.lock.lease", 10),
		attribute.Int("holdfast.lock.requests", 2),
		attribute.String("holdfast.lock.how", "free"),
	}, acquire.Attributes())
	require.ElementsMatch(t, []attribute.KeyValue{
		attribute.String("holdfast.lock.name", "order:4711"),
		attribute.String("holdfast.lock.kind", "fenced"),
		attribute.String("holdfast.lock.owner", "c:1"),
		attribute.Int64("holdfast.lock.token", 7),
		attribute.Float64("holdfast.lock.lease", 30),
	}, kept.Attributes())
	require.Equal(t, codes.Unset, acquire.Status().Code)
	require.Equal(t, codes.Unset, kept.Status().Code)
}

func TestHoldIsInTheTraceOfItsAcquisitionWithoutACallersSpan(t *testing.T) {
	s := newSignals()
	_, hold := s.takes(t.Context(), order)
	hold.HoldEnd(end(order, nil, time.Second))
	acquire, kept := s.ended(t, "lock acquire"), s.ended(t, "lock hold")
	require.False(t, acquire.Parent().IsValid())
	require.Equal(t, acquire.SpanContext(), kept.Parent())
}

func TestUnlimitedWaitAndTheWatchdogAreLeftOut(t *testing.T) {
	s := newSignals()
	call := s.AcquireStart(t.Context(), rlock.AcquireStart{
		Lock: rlock.TracedLock{Name: "a", Kind: "fair"},
		Wait: rlock.Forever, Lease: rlock.Watchdog})
	s.fails(call, rlock.TracedLock{Name: "a", Kind: "fair"}, rlock.ErrClosed)
	for _, a := range s.ended(t, "lock acquire").Attributes() {
		require.NotContains(t, []attribute.Key{holdfastotel.AttrWait, holdfastotel.AttrLease,
			holdfastotel.AttrServer}, a.Key)
	}
}

func TestSpanTellsHowTheCallWaited(t *testing.T) {
	s := newSignals()
	headed := time.Now().Add(time.Second)
	for how, want := range map[rlock.How][]string{
		rlock.Free:       {"queued", "head"},
		rlock.Granted:    {"queued", "head", "granted"},
		rlock.HandedOver: {"queued", "handed over"},
	} {
		s.spans.Reset()
		call := s.start(t.Context(), order)
		s.WaitStart(call, rlock.WaitStart{Lock: order})
		d := rlock.WaitEnd{Lock: order, Waited: time.Second}
		if how != rlock.HandedOver {
			d.BecameHead = headed
		}
		s.WaitEnd(call, d)
		s.acquired(call, order, how, false)
		acquire := s.ended(t, "lock acquire")
		require.Equal(t, want, events(acquire))
		if how != rlock.HandedOver {
			require.True(t, headed.Equal(acquire.Events()[1].Time))
		}
	}
}

func TestRoundsAreEventsWithTheNodesThatRefused(t *testing.T) {
	s := newSignals()
	call := s.start(t.Context(), order)
	s.RoundEnd(call, rlock.RoundEnd{Lock: order, Round: 3, Granted: 1, Want: 2,
		Refused: []rlock.RefusedNode{{Server: "b", Err: &rlock.HeldError{}},
			{Server: "c", Err: &rlock.ServerError{Code: "OOM"}}}})
	s.fails(call, order, &rlock.HeldError{})
	acquire := s.ended(t, "lock acquire")
	require.Equal(t, []string{"round"}, events(acquire))
	require.Equal(t, []attribute.KeyValue{
		attribute.Int("holdfast.redlock.round", 3),
		attribute.Int("holdfast.redlock.granted", 1),
		attribute.Int("holdfast.redlock.want", 2),
		attribute.StringSlice("holdfast.redlock.refused", []string{"b not_acquired", "c server_OOM"}),
	}, acquire.Events()[0].Attributes)
}

func TestOnlyAFailedCallIsAnError(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, test := range []struct {
		ctx  context.Context
		err  error
		want codes.Code
	}{
		{t.Context(), &rlock.HeldError{}, codes.Unset},
		{canceled, context.Canceled, codes.Unset},
		{t.Context(), rlock.ErrOutcomeUnknown, codes.Error},
	} {
		s := newSignals()
		s.fails(s.start(test.ctx, order), order, test.err)
		acquire := s.ended(t, "lock acquire")
		require.Equal(t, test.want, acquire.Status().Code, "%v", test.err)
		require.Contains(t, acquire.Attributes(),
			holdfastotel.AttrErrorType.String(holdfastotel.ErrorType(test.err)))
		require.Empty(t, acquire.Links())
	}
}

func TestSpanOfAGiveUpNamesTheHolder(t *testing.T) {
	s := newSignals()
	call := s.AcquireStart(t.Context(), rlock.AcquireStart{Lock: order, Since: time.Now(),
		Wait: time.Second, Lease: rlock.Lease(time.Second)}) // with every attribute that there is
	s.fails(call, order, &rlock.HeldError{Owner: "c:2"})
	require.Contains(t, s.ended(t, "lock acquire").Attributes(),
		holdfastotel.AttrHolder.String("c:2"))
}

func TestHoldThatIsLostOrNotReleasedIsAnError(t *testing.T) {
	for _, test := range []struct {
		err     error
		want    codes.Code
		outcome string
	}{
		{nil, codes.Unset, "released"},
		{rlock.ErrClosed, codes.Unset, "closed"},
		{&rlock.LostError{Lock: "order:4711", Reason: rlock.ErrGone}, codes.Error, "lost"},
		{rlock.ErrOutcomeUnknown, codes.Error, "unconfirmed"},
	} {
		s := newSignals()
		_, hold := s.takes(t.Context(), order)
		hold.HoldEnd(end(order, test.err, 0))
		kept := s.ended(t, "lock hold")
		require.Equal(t, test.want, kept.Status().Code, "%v", test.err)
		if test.err != nil {
			require.Contains(t, kept.Attributes(), outcome(test.outcome))
			require.Contains(t, kept.Attributes(), holdfastotel.AttrServer.String(order.Server))
			require.Contains(t, kept.Attributes(),
				holdfastotel.AttrErrorType.String(holdfastotel.ErrorType(test.err)))
		}
		if test.want == codes.Error {
			require.Equal(t, test.err.Error(), kept.Status().Description)
		}
	}
}

func TestRenewalThatFailedIsAnEventOfTheHold(t *testing.T) {
	s := newSignals()
	_, hold := s.takes(t.Context(), order)
	for _, err := range []error{nil, &rlock.ServerError{Code: "OOM", Message: "OOM no memory"}} {
		s.RenewalEnd(rlock.RenewalEnd{Lock: order, Err: err, Lease: time.Second, Hold: hold})
	}
	hold.HoldEnd(end(order, nil, 0))
	kept := s.ended(t, "lock hold")
	require.Equal(t, []string{"renewal failed"}, events(kept))
	require.Contains(t, kept.Events()[0].Attributes, holdfastotel.AttrErrorType.String("server_OOM"))
}

func TestNestedHoldHasNoSpanAndIsInsideTheCallers(t *testing.T) {
	s := newSignals()
	outer, first := s.takes(t.Context(), order)
	inner, caller := s.traces.Tracer("test").Start(outer, "inside")
	nested, second := s.acquired(s.start(inner, order), order, rlock.Reentered, true)
	require.Equal(t, caller.SpanContext(), trace.SpanContextFromContext(nested))
	released := end(order, nil, 0)
	released.Last = false
	second.HoldEnd(released)
	caller.End()
	require.Len(t, s.spans.Ended(), 3, "two calls, and what is inside")
	first.HoldEnd(end(order, nil, 0))
	s.ended(t, "lock hold")
}

func TestExemplarsNameTheSpan(t *testing.T) {
	s := newSignals()
	ctx, caller := s.traces.Tracer("test").Start(t.Context(), "request")
	_, hold := s.takes(ctx, order)
	hold.HoldEnd(end(order, nil, time.Second))
	without := newSignals(holdfastotel.WithoutSpans())
	held, hold := without.takes(ctx, order)
	require.Equal(t, caller, trace.SpanFromContext(held))
	without.RenewalEnd(rlock.RenewalEnd{Lock: order, Err: errors.New("x"), Lease: time.Second,
		Hold: hold})
	hold.HoldEnd(end(order, nil, time.Second))
	caller.End()
	require.Empty(t, s.ended(t, "request").Events())
	for name, span := range map[string]string{
		"holdfast.lock.acquire.duration":  "lock acquire",
		"holdfast.lock.hold.duration":     "lock hold",
		"holdfast.lock.deadline.margin":   "lock hold",
		"holdfast.lock.lease.utilization": "lock hold",
	} {
		require.Len(t, s.histogram(t, name), 1)
		for _, p := range s.histogram(t, name) {
			require.Len(t, p.Exemplars, 1, name)
			trace, want := caller.SpanContext().TraceID(), s.ended(t, span).SpanContext().SpanID()
			require.Equal(t, trace[:], p.Exemplars[0].TraceID)
			require.Equal(t, want[:], p.Exemplars[0].SpanID, name)
		}
		for _, p := range without.histogram(t, name) {
			want := caller.SpanContext().SpanID()
			require.Equal(t, want[:], p.Exemplars[0].SpanID, name)
		}
	}
}

func TestWhatIsNotSampledIsMeasuredWithoutSpans(t *testing.T) {
	never := sdk.NewTracerProvider(sdk.WithSampler(sdk.NeverSample()))
	s := newSignals(holdfastotel.WithTracerProvider(never))
	held, hold := s.takes(t.Context(), order)
	require.True(t, trace.SpanContextFromContext(held).IsValid(), "nor is what is inside sampled")
	require.False(t, trace.SpanContextFromContext(held).IsSampled())
	hold.HoldEnd(end(order, nil, time.Second))
	ctx, caller := never.Tracer("test").Start(t.Context(), "request")
	held, hold = s.takes(ctx, order)
	require.Equal(t, caller, trace.SpanFromContext(held))
	hold.HoldEnd(end(order, nil, time.Second))
	released := s.histogram(t, "holdfast.lock.hold.duration")[with(outcome("released"))]
	require.EqualValues(t, 2, released.Count)
	require.Empty(t, released.Exemplars)
	require.Equal(t, map[string]int64{base: 0}, s.sum(t, "holdfast.lock.held"))
}

// It runs in a process of its own: what is global can be set later once.
func TestGlobalProvidersMayBeSetLater(t *testing.T) {
	if os.Getenv("HOLDFAST_GLOBAL_PROVIDERS") == "" {
		again := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$")
		again.Env = append(os.Environ(), "HOLDFAST_GLOBAL_PROVIDERS=1")
		output, err := again.CombinedOutput()
		require.NoError(t, err, "%s", output)
		return
	}
	s := newSignals()
	s.Tracer = holdfastotel.New()
	otel.SetMeterProvider(s.meters)
	otel.SetTracerProvider(s.traces)
	_, hold := s.takes(t.Context(), order)
	require.Equal(t, map[string]int64{base: 1}, s.sum(t, "holdfast.lock.held"))
	require.Len(t, s.histogram(t, "holdfast.lock.acquire.duration"), 1)
	hold.HoldEnd(end(order, nil, time.Second))
	s.ended(t, "lock hold")
}

func TestMetricsAllocateNothing(t *testing.T) {
	s := newSignals(holdfastotel.WithoutSpans())
	ctx := context.Background()
	require.Zero(t, testing.AllocsPerRun(100, func() {
		_, hold := s.takes(ctx, order)
		hold.HoldEnd(end(order, nil, time.Second))
	}))
}

// Each tracer has its own spans, also if another one has none.
func TestTracersThatShareAClientHaveTheirOwnSpans(t *testing.T) {
	first, second, without := newSignals(), newSignals(), newSignals(holdfastotel.WithoutSpans())
	for _, all := range [][]rlock.Tracer{{first, second, without}, {without, second, first}} {
		first.spans.Reset()
		second.spans.Reset()
		m := rlock.MultiTracer(all...)
		ctx := m.AcquireStart(t.Context(), rlock.AcquireStart{Lock: order, Since: time.Now()})
		m.(rlock.WaitTracer).WaitStart(ctx, rlock.WaitStart{Lock: order})
		_, hold := m.(rlock.HoldTracer).HoldStart(ctx, rlock.HoldStart{Lock: order, How: rlock.Free})
		m.AcquireEnd(ctx, rlock.AcquireEnd{Lock: order, How: rlock.Free})
		hold.HoldEnd(end(order, nil, time.Second))
		for _, s := range []*signals{first, second} {
			require.Equal(t, []string{"queued"}, events(s.ended(t, "lock acquire")))
			s.ended(t, "lock hold")
			require.Len(t, s.spans.Started(), 2)
		}
		require.Empty(t, without.spans.Started())
	}
}
