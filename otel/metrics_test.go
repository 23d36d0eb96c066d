package holdfastotel_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	holdfastotel "holdfast/otel"
	"holdfast/redlock"
	"holdfast/rlock"
)

var (
	base      = with()
	outcome   = holdfastotel.AttrOutcome.String
	how       = holdfastotel.AttrHow.String
	errorType = holdfastotel.AttrErrorType.String
)

func TestEachOutcomeOfACallIsASeriesOfItsDuration(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancelLate := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancelLate()
	expired := fmt.Errorf("%w: %w", rlock.ErrOutcomeUnknown,
		&rlock.ServerError{Err: context.DeadlineExceeded})
	for _, test := range []struct {
		ctx    context.Context
		err    error
		how    rlock.How
		series string
	}{
		{how: rlock.Free, series: with(outcome("acquired"), how("free"))},
		{how: rlock.HandedOver, series: with(outcome("acquired"), how("handed_over"))},
		{how: rlock.Granted, series: with(outcome("acquired"), how("granted"))},
		{how: rlock.Reentered, series: with(outcome("acquired"), how("reentered"))},
		{how: rlock.Attached, series: with(outcome("acquired"), how("attached"))},
		{err: &rlock.HeldError{}, series: with(outcome("not_acquired"), errorType("not_acquired"))},
		{ctx: canceled, err: fmt.Errorf("%w: %w", rlock.ErrNotAcquired, context.Canceled),
			series: with(outcome("canceled"), errorType("canceled"))},
		{ctx: late, err: fmt.Errorf("%w: %w", rlock.ErrNotAcquired, context.DeadlineExceeded),
			series: with(outcome("canceled"), errorType("deadline_exceeded"))},
		{ctx: canceled, err: rlock.ErrInvalid, series: with(outcome("failed"), errorType("invalid"))},
		{err: expired, series: with(outcome("failed"), errorType("outcome_unknown"))},
		{err: fmt.Errorf("%w: %w", rlock.ErrNotAcquired, rlock.ErrUpgrade),
			series: with(outcome("failed"), errorType("upgrade"))},
		{err: fmt.Errorf("%w: %w", rlock.ErrNotAcquired, rlock.ErrDeadlock),
			series: with(outcome("failed"), errorType("deadlock"))},
		{err: redlock.ErrNoQuorum, series: with(outcome("failed"), errorType("no_quorum"))},
		{err: &rlock.ServerError{Code: "OOM"}, series: with(outcome("failed"), errorType("server_OOM"))},
	} {
		s := newSignals()
		ctx := test.ctx
		if ctx == nil {
			ctx = t.Context()
		}
		ctx = s.start(ctx, order)
		if test.err != nil {
			s.fails(ctx, order, test.err)
		} else {
			s.acquired(ctx, order, test.how, false)
		}
		got := s.histogram(t, "holdfast.lock.acquire.duration")
		require.Len(t, got, 1)
		require.Contains(t, got, test.series)
		require.EqualValues(t, 1, got[test.series].Count)
		took := .003
		if test.err != nil {
			took = 1
		}
		require.InDelta(t, took, got[test.series].Sum, 1e-9)
	}
}

func TestEachEndOfAHoldIsASeriesOfItsDuration(t *testing.T) {
	for _, test := range []struct {
		err    error
		left   bool
		series string
		margin bool
	}{
		{series: with(outcome("released")), margin: true},
		{left: true, series: with(outcome("left"))},
		{err: &rlock.LostError{Reason: rlock.ErrGone}, margin: true,
			series: with(outcome("lost"), errorType("gone"))},
		{err: &rlock.LostError{Reason: rlock.ErrExpired}, margin: true,
			series: with(outcome("lost"), errorType("expired"))},
		{err: &rlock.LostError{Reason: errors.New("forced")}, margin: true,
			series: with(outcome("lost"), errorType("lost"))},
		{err: rlock.ErrClosed, margin: true, series: with(outcome("closed"), errorType("closed"))},
		{err: rlock.ErrOutcomeUnknown, margin: true,
			series: with(outcome("unconfirmed"), errorType("outcome_unknown"))},
	} {
		s := newSignals()
		_, hold := s.takes(t.Context(), order)
		require.Equal(t, map[string]int64{base: 1}, s.sum(t, "holdfast.lock.held"))
		d := end(order, test.err, 20*time.Second)
		d.Left = test.left
		hold.HoldEnd(d)
		require.Equal(t, map[string]int64{base: 0}, s.sum(t, "holdfast.lock.held"))
		got := s.histogram(t, "holdfast.lock.hold.duration")
		require.Len(t, got, 1)
		require.Contains(t, got, test.series)
		require.InDelta(t, .04, got[test.series].Sum, 1e-9)
		if margin := s.histogram(t, "holdfast.lock.deadline.margin"); !test.margin {
			require.Empty(t, margin)
		} else {
			require.InDelta(t, 20, margin[base].Sum, 1e-9)
			require.InDelta(t, 1/3., s.histogram(t, "holdfast.lock.lease.utilization")[base].Sum, 1e-9)
		}
	}
}

func TestOnlyLossesAreCountedAsLost(t *testing.T) {
	s := newSignals()
	for _, err := range []error{nil, rlock.ErrClosed, rlock.ErrOutcomeUnknown,
		&rlock.LostError{Reason: rlock.ErrExpired}, &rlock.LostError{Reason: rlock.ErrExpired},
		&rlock.LostError{Reason: rlock.ErrGone}} {
		_, hold := s.takes(t.Context(), order)
		hold.HoldEnd(end(order, err, 0))
	}
	require.Equal(t, losses(2, 1), s.sum(t, "holdfast.lock.lost"))
}

// losses returns what is counted as lost, by the reason.
func losses(expired, gone int64) map[string]int64 {
	return map[string]int64{with(errorType("expired")): expired, with(errorType("gone")): gone}
}

func TestAnAcquisitionIsCountedOnceHoweverManyHoldsItHas(t *testing.T) {
	s := newSignals()
	outer, first := s.takes(t.Context(), order)
	_, second := s.acquired(s.start(outer, order), order, rlock.Reentered, true)
	require.Equal(t, map[string]int64{base: 1}, s.sum(t, "holdfast.lock.held"))
	lost := end(order, &rlock.LostError{Reason: rlock.ErrGone}, time.Second)
	lost.Last = false
	second.HoldEnd(lost)
	require.Equal(t, map[string]int64{base: 1}, s.sum(t, "holdfast.lock.held"))
	require.Empty(t, s.histogram(t, "holdfast.lock.hold.duration"))
	require.Equal(t, losses(0, 0), s.sum(t, "holdfast.lock.lost"))
	lost.Last = true
	first.HoldEnd(lost)
	require.Equal(t, map[string]int64{base: 0}, s.sum(t, "holdfast.lock.held"))
	require.Len(t, s.histogram(t, "holdfast.lock.hold.duration"), 1)
	require.Equal(t, losses(0, 1), s.sum(t, "holdfast.lock.lost"))
}

func TestWaitingFollowsWhoWaits(t *testing.T) {
	s := newSignals()
	a, b := s.start(t.Context(), order), s.start(t.Context(), order)
	s.WaitStart(a, rlock.WaitStart{Lock: order})
	s.WaitStart(b, rlock.WaitStart{Lock: order})
	require.Equal(t, map[string]int64{base: 2}, s.sum(t, "holdfast.lock.waiting"))
	s.WaitEnd(a, rlock.WaitEnd{Lock: order})
	require.Equal(t, map[string]int64{base: 1}, s.sum(t, "holdfast.lock.waiting"))
	s.WaitEnd(b, rlock.WaitEnd{Lock: order})
	require.Equal(t, map[string]int64{base: 0}, s.sum(t, "holdfast.lock.waiting"))
}

func TestHandOversAreCountedByScope(t *testing.T) {
	s := newSignals()
	for _, how := range []rlock.How{rlock.Free, rlock.HandedOver, rlock.HandedOver, rlock.Granted} {
		s.acquired(s.start(t.Context(), order), order, how, false)
	}
	scope := holdfastotel.AttrScope.String
	require.Equal(t, map[string]int64{with(scope("in_process")): 2,
		with(scope("between_processes")): 1}, s.sum(t, "holdfast.lock.handovers"))
}

func TestRenewalsSayWhatWasLeftAndThoseThatFailAreCounted(t *testing.T) {
	s := newSignals()
	_, hold := s.takes(t.Context(), order)
	renewal := rlock.RenewalEnd{Lock: order, Margin: 20 * time.Second, Lease: 30 * time.Second,
		Hold: hold}
	s.RenewalEnd(renewal)
	require.Empty(t, s.sum(t, "holdfast.lock.renewal.failures"))
	renewal.Margin, renewal.Err = 2*time.Second, &rlock.ServerError{Code: "NOPERM"}
	s.RenewalEnd(renewal)
	renewal.Margin, renewal.Hold = -time.Second, nil // of a node of a RedLock
	s.RenewalEnd(renewal)
	require.Equal(t, map[string]int64{with(errorType("server_NOPERM")): 2},
		s.sum(t, "holdfast.lock.renewal.failures"))
	require.InDelta(t, 22, s.histogram(t, "holdfast.lock.deadline.margin")[base].Sum, 1e-9)
	used := s.histogram(t, "holdfast.lock.lease.utilization")[base]
	require.InDelta(t, 1/3.+28/30.+1, used.Sum, 1e-9)
	near := uint64(0)
	for i, bound := range used.Bounds {
		if bound >= .9 {
			near += used.BucketCounts[i+1]
		}
	}
	require.EqualValues(t, 2, near, "utilizations above 0.9 have buckets of their own")
}

func TestRoundsAndNodesOfARedLockAreMeasured(t *testing.T) {
	s := newSignals()
	red := rlock.TracedLock{Name: "r", Kind: "redlock", Server: "a,b,c"}
	ctx := s.start(t.Context(), red)
	round := rlock.RoundEnd{Lock: red, Round: 1, Granted: 1, Want: 2, Took: time.Second}
	s.RoundEnd(ctx, round)
	round.Granted, round.Took = 2, time.Millisecond
	s.RoundEnd(ctx, round)
	rounds := s.histogram(t, "holdfast.redlock.round.duration")
	require.InDelta(t, 1, rounds["holdfast.lock.outcome=no_quorum"].Sum, 1e-9)
	require.InDelta(t, .001, rounds["holdfast.lock.outcome=quorum"].Sum, 1e-9)
	for range 2 {
		s.NodeFailed(rlock.NodeFailed{Lock: red, Server: "c", Operation: "extend",
			Err: &rlock.ServerError{}})
	}
	require.Equal(t, map[string]int64{
		"error.type=no_reply,holdfast.redlock.operation=extend,holdfast.server=c": 2,
	}, s.sum(t, "holdfast.redlock.node.failures"))
}

func TestNameFuncNamesSeries(t *testing.T) {
	s := newSignals(holdfastotel.WithNameFunc(func(name string) string {
		if name == "" {
			return ""
		}
		return name[:5]
	}))
	s.takes(t.Context(), order)
	s.takes(t.Context(), rlock.TracedLock{Name: "order:1", Kind: order.Kind, Server: order.Server})
	s.takes(t.Context(), rlock.TracedLock{Kind: order.Kind, Server: order.Server})
	require.Equal(t, map[string]int64{base: 1, with(holdfastotel.AttrName.String("order")): 2},
		s.sum(t, "holdfast.lock.held"))
}

func TestNameFuncThatNamesTooManyIsBounded(t *testing.T) {
	s := newSignals(holdfastotel.WithNameFunc(func(name string) string { return name }))
	for i := range 3000 {
		s.takes(t.Context(), rlock.TracedLock{Name: fmt.Sprint(i), Kind: "fair"})
	}
	held := s.sum(t, "holdfast.lock.held")
	require.Len(t, held, 201)
	require.EqualValues(t, 2800, held["holdfast.lock.kind=fair,holdfast.lock.name=_OTHER"])
}

func TestManyGoroutinesLoseNoMeasurement(t *testing.T) {
	s := newSignals()
	const goroutines, each = 16, 200
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			l := order
			l.Kind = []string{"fair", "fenced", "reentrant"}[g%3]
			for i := range each {
				ctx := s.start(t.Context(), l)
				s.WaitStart(ctx, rlock.WaitStart{Lock: l})
				s.WaitEnd(ctx, rlock.WaitEnd{Lock: l, BecameHead: time.Now()})
				_, hold := s.acquired(ctx, l, rlock.How(1+i%5), false)
				s.RenewalEnd(rlock.RenewalEnd{Lock: l, Lease: time.Second, Hold: hold})
				hold.HoldEnd(end(l, nil, time.Second))
				if i%50 == 0 {
					s.sum(t, "holdfast.lock.held")
				}
			}
		})
	}
	wg.Wait()
	n := uint64(0)
	for _, p := range s.histogram(t, "holdfast.lock.acquire.duration") {
		n += p.Count
	}
	require.EqualValues(t, goroutines*each, n)
	for series, held := range s.sum(t, "holdfast.lock.held") {
		require.Zero(t, held, series)
	}
	for series, waiting := range s.sum(t, "holdfast.lock.waiting") {
		require.Zero(t, waiting, series)
	}
	require.Len(t, s.spans.Ended(), 2*goroutines*each)
}

// Goroutines that name locks while the last names become series begin and end waits in the same.
func TestWaitEndsInTheSeriesThatItBeganIn(t *testing.T) {
	s := newSignals(holdfastotel.WithNameFunc(func(name string) string { return name }))
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			for i := range 1500 {
				l := rlock.TracedLock{Name: strconv.Itoa(i), Kind: "fair"}
				ctx := s.start(context.Background(), l)
				s.WaitStart(ctx, rlock.WaitStart{Lock: l})
				s.WaitEnd(ctx, rlock.WaitEnd{Lock: l})
				s.fails(ctx, l, rlock.ErrNotAcquired)
			}
		})
	}
	callers.Wait()
	waiting := s.sum(t, "holdfast.lock.waiting")
	require.LessOrEqual(t, len(waiting), 1001)
	for series, n := range waiting {
		require.Zero(t, n, series)
	}
}
