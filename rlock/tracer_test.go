package rlock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/internal/logtest"
	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// traced returns a client with a tracer.
func traced(t testing.TB, s *redistest.Server, options rlock.Options,
) (*rlock.Client, *locktest.Tracer) {
	t.Helper()
	tr := new(locktest.Tracer)
	options.Tracer = tr
	return newClient(t, s, options), tr
}

// steps returns the types of the events, in their order.
func steps(tr *locktest.Tracer) (types []string) {
	for _, event := range tr.Events() {
		types = append(types, strings.TrimPrefix(fmt.Sprintf("%T", event), "rlock."))
	}
	return types
}

// only returns the only event of a type.
func only[T any](t testing.TB, tr *locktest.Tracer) T {
	t.Helper()
	all := locktest.Heard[T](tr)
	require.Len(t, all, 1)
	return all[0]
}

func TestTracerHearsOfEachStep(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	onEveryKind(t, func(t *testing.T, k kind) {
		c, tr := traced(t, s, rlock.Options{Server: "cache"})
		lock := k.lock(c, k.name)
		before := time.Now()
		hold, err := lock.TryLock(t.Context(), 5*time.Second, 20*time.Second)
		require.NoError(t, err)
		require.Equal(t, []string{"AcquireStart", "HoldStart", "AcquireEnd"}, steps(tr))
		name := rlock.TracedLock{Name: k.name, Kind: k.name, Server: "cache"}

		start := only[rlock.AcquireStart](t, tr)
		require.Equal(t, name, start.Lock)
		require.Equal(t, 5*time.Second, start.Wait)
		require.Equal(t, 20*time.Second, start.Lease)
		require.WithinRange(t, start.Since, before, time.Now())

		begun := only[rlock.HoldStart](t, tr)
		require.Equal(t, rlock.HoldStart{Lock: name, Owner: hold.Owner(), Token: hold.Token(),
			How: rlock.Free, Deadline: hold.Deadline(), Lease: 20 * time.Second}, begun)

		end := only[rlock.AcquireEnd](t, tr)
		require.Positive(t, end.Took)
		end.Took = 0
		require.Equal(t, rlock.AcquireEnd{Lock: name, How: rlock.Free, Requests: 1}, end)

		unlock(t, hold)
		require.ErrorIs(t, hold.Unlock(t.Context()), rlock.ErrNotHeld)
		released := only[rlock.HoldEnd](t, tr)
		require.Positive(t, released.Held)
		require.InDelta(t, 20, released.Margin.Seconds(), 10)
		released.Held, released.Margin = 0, 0
		require.Equal(t, rlock.HoldEnd{Lock: name, Owner: hold.Owner(), Last: true,
			Lease: 20 * time.Second}, released)
	})
}

func TestContextOfAHoldComesFromTheTracer(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, _ := traced(t, s, rlock.Options{})
	hold := take(t, c.NewLock("order"), longLease)
	begun, _ := hold.Context().Value(locktest.TraceKey{}).(rlock.HoldStart)
	require.Equal(t, hold.Owner(), begun.Owner)
	unlock(t, hold)
	require.ErrorIs(t, context.Cause(hold.Context()), rlock.ErrReleased)

	// One that hears of no holds changes no contexts of holds.
	c = newClient(t, s, rlock.Options{Tracer: struct{ rlock.Tracer }{new(locktest.Tracer)}})
	hold = take(t, c.NewLock("order"), longLease)
	require.Nil(t, hold.Context().Value(locktest.TraceKey{}))
	unlock(t, hold)
}

func TestTracerHearsOfAWaitThatIsGivenUp(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	onEveryKind(t, func(t *testing.T, k kind) {
		c, tr := traced(t, s, rlock.Options{})
		other := take(t, k.contender(newClient(t, s, rlock.Options{}), k.name), longLease)
		defer unlock(t, other)

		_, err := k.lock(c, k.name).TryLock(t.Context(), rlock.NoWait, longLease)
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
		require.Equal(t, []string{"AcquireStart", "AcquireEnd"}, steps(tr))
		end := only[rlock.AcquireEnd](t, tr)
		require.Equal(t, err, end.Err, "the tracer hears what the caller gets")
		require.Equal(t, rlock.NotAcquired, end.How)

		tr.Forget()
		_, err = k.lock(c, k.name).TryLock(t.Context(), 300*time.Millisecond, longLease)
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
		require.Equal(t, []string{"AcquireStart", "WaitStart", "WaitEnd", "AcquireEnd"}, steps(tr))
		require.False(t, only[rlock.WaitEnd](t, tr).BecameHead.IsZero())
		end = only[rlock.AcquireEnd](t, tr)
		require.Equal(t, only[rlock.WaitEnd](t, tr).Waited, end.Waited)
		require.Positive(t, end.Waited)
		require.Positive(t, end.Requests)

		tr.Forget()
		ctx, cancel := context.WithCancel(t.Context())
		waiter := lockInBackground(ctx, k.lock(c, k.name), longLease)
		locktest.WaitToHear[rlock.WaitStart](t, tr, 1)
		cancel()
		require.ErrorIs(t, result(t, waiter).Err, context.Canceled)
		require.ErrorIs(t, only[rlock.AcquireEnd](t, tr).Err, context.Canceled)
		require.Len(t, locktest.Heard[rlock.WaitEnd](tr), 1)
	})
}

// A waiter behind another of its process becomes the head later.
func TestTracerHearsWhenAWaiterBecomesHead(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, tr := traced(t, s, rlock.Options{})
	lock := c.NewLock("order")
	hold := take(t, lock, longLease)
	ctx, cancel := context.WithCancel(t.Context())
	first := lockInBackground(ctx, lock, longLease)
	locktest.WaitToHear[rlock.WaitStart](t, tr, 1)
	waitForListeners(t, s, "order", 1)
	ctx2, cancel2 := context.WithCancel(t.Context())
	second := lockInBackground(ctx2, lock, longLease)
	locktest.WaitToHear[rlock.WaitStart](t, tr, 2)
	eventually(t, func() bool { return rlock.Waiting(lock) == 2 }, "not queued")
	cancel2()
	result(t, second)
	require.True(t, only[rlock.WaitEnd](t, tr).BecameHead.IsZero(), "it never was the head")

	second = lockInBackground(t.Context(), lock, longLease)
	eventually(t, func() bool { return rlock.Waiting(lock) == 2 }, "not queued")
	left := time.Now()
	cancel()
	result(t, first)
	eventually(t, func() bool { return rlock.Waiting(lock) == 1 }, "not left")
	unlock(t, hold)
	unlock(t, acquired(t, second))
	waits := locktest.Heard[rlock.WaitEnd](tr)
	require.Len(t, waits, 3)
	require.True(t, waits[2].BecameHead.After(left), "it became head when the first left")
}

func TestTracerHearsHowALockIsHandedOver(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	onEach(t, passing(), func(t *testing.T, k kind) {
		c, tr := traced(t, s, rlock.Options{})
		name := "within:" + k.name
		hold := take(t, k.lock(c, name), longLease)
		successor := k.parked(t, s, k.lock(c, name))
		tr.Forget()
		unlock(t, hold)
		next := acquired(t, successor)
		require.Equal(t, rlock.HandedOver, only[rlock.HoldStart](t, tr).How)
		require.Equal(t, rlock.HandedOver, only[rlock.AcquireEnd](t, tr).How)
		unlock(t, next)
	})
	onEach(t, givenAway(), func(t *testing.T, k kind) {
		c, tr := traced(t, s, rlock.Options{})
		name := "between:" + k.name
		hold := take(t, k.lock(newClient(t, s, rlock.Options{}), name), longLease)
		waiter := registers(t, s, 1, k.lock(c, name), longLease)
		unlock(t, hold)
		next := acquired(t, waiter)
		require.Equal(t, rlock.Granted, only[rlock.HoldStart](t, tr).How)
		require.Equal(t, rlock.Granted, only[rlock.AcquireEnd](t, tr).How)
		unlock(t, next)
	})
}

func TestTracerHearsOfAHandOverFromAnotherProcess(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	k := kindNamed("reentrant")
	p := startProcess(t, "given", s.Addr(), k.name, "30s")
	p.Line(t) // it has the lock
	c, tr := traced(t, s, rlock.Options{})
	waiter := registers(t, s, 1, k.lock(c, k.name), longLease)
	p.Tell(t, "release")
	hold := acquired(t, waiter)
	require.Equal(t, rlock.Granted, only[rlock.AcquireEnd](t, tr).How)
	unlock(t, hold)
	p.Wait(t)
}

func TestTracerHearsOfTheShortLeaseOfAHandOver(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	onEach(t, givenAway(), func(t *testing.T, k kind) {
		const short = 5 * time.Second // a tenth of 30 s, but no less than waiters sleep
		c, tr := traced(t, s, rlock.Options{})
		hold := take(t, k.lock(newClient(t, s, rlock.Options{}), k.name), longLease)
		waiter := registers(t, s, 1, k.lock(c, k.name), rlock.Watchdog)
		unlock(t, hold)
		next := acquired(t, waiter)
		require.Equal(t, short, only[rlock.HoldStart](t, tr).Lease)

		renewed := locktest.WaitToHear[rlock.RenewalEnd](t, tr, 1)[0]
		require.NoError(t, renewed.Err)
		require.Equal(t, short, renewed.Lease)
		require.Less(t, renewed.Margin, short)
		tr.Forget()
		unlock(t, next)
		end := only[rlock.HoldEnd](t, tr)
		require.Equal(t, 30*time.Second, end.Lease)
	})
}

func TestTracerHearsOfNestedHolds(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	onEveryKind(t, func(t *testing.T, k kind) {
		c, tr := traced(t, s, rlock.Options{})
		lock := k.lock(c, k.name)
		outer := take(t, lock, longLease)
		require.False(t, only[rlock.HoldStart](t, tr).Nested)
		tr.Forget()
		inner := takeWith(outer.Context(), t, lock, longLease)
		require.Equal(t, rlock.Reentered, only[rlock.AcquireEnd](t, tr).How)
		require.True(t, only[rlock.HoldStart](t, tr).Nested)

		unlock(t, outer) // first: the lock stays held
		require.False(t, only[rlock.HoldEnd](t, tr).Last)
		tr.Forget()
		require.NoError(t, lock.Unlock(inner.Context()))
		require.True(t, only[rlock.HoldEnd](t, tr).Last)

		tr.Forget()
		unlock(t, take(t, lock, longLease))
		require.False(t, only[rlock.HoldStart](t, tr).Nested, "another acquisition")
	})
}

func TestTracerHearsOfALossOnce(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	onEveryKind(t, func(t *testing.T, k kind) {
		c, tr := traced(t, s, rlock.Options{WatchdogLease: 2 * time.Second})
		outer := take(t, k.lock(c, k.name), rlock.Watchdog)
		inner := takeWith(outer.Context(), t, k.lock(c, k.name), rlock.Watchdog)
		s.Do(t, "DEL", k.name)
		lostTo(t, inner, rlock.ErrGone)
		lostTo(t, outer, rlock.ErrGone)
		ends := locktest.WaitToHear[rlock.HoldEnd](t, tr, 2)
		require.Len(t, ends, 2)
		for _, end := range ends {
			require.ErrorIs(t, end.Err, rlock.ErrLost)
			require.ErrorIs(t, end.Err, rlock.ErrGone)
		}
		require.False(t, ends[0].Last)
		require.True(t, ends[1].Last)
	})
}

func TestTracerHearsOfALossThatOnlyTheReleaseFinds(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	onEveryKind(t, func(t *testing.T, k kind) {
		c, tr := traced(t, s, rlock.Options{})
		hold := take(t, k.lock(c, k.name), longLease)
		s.Do(t, "DEL", k.name)
		require.ErrorIs(t, hold.Unlock(t.Context()), rlock.ErrLost)
		end := only[rlock.HoldEnd](t, tr)
		require.ErrorIs(t, end.Err, rlock.ErrGone)
		require.Positive(t, end.Margin)
	})
}

// A lease that is shorter than what is left changes nothing.
func TestTracerHearsOfTheLeaseAfterAnExtension(t *testing.T) {
	t.Parallel()
	c, tr := traced(t, redistest.Start(t), rlock.Options{})
	hold := take(t, c.NewLock("order"), longLease)
	require.NoError(t, hold.Extend(t.Context(), time.Second))
	unlock(t, hold)
	require.Equal(t, longLease, only[rlock.HoldEnd](t, tr).Lease)

	tr.Forget()
	hold = take(t, c.NewLock("order"), time.Minute)
	require.NoError(t, hold.Extend(t.Context(), longLease))
	unlock(t, hold)
	require.Equal(t, longLease, only[rlock.HoldEnd](t, tr).Lease)
}

func TestTracerHearsOfAForcedLoss(t *testing.T) {
	t.Parallel()
	c, tr := traced(t, redistest.Start(t), rlock.Options{})
	lock := c.NewLock("order")
	hold := take(t, lock, longLease)
	_, err := lock.ForceUnlock(t.Context())
	require.NoError(t, err)
	lostTo(t, hold, rlock.ErrForced)
	require.ErrorIs(t, locktest.WaitToHear[rlock.HoldEnd](t, tr, 1)[0].Err, rlock.ErrForced)
}

func TestTracerHearsOfALeaseThatRunsOut(t *testing.T) {
	t.Parallel()
	c, tr := traced(t, redistest.Start(t), rlock.Options{})
	hold := take(t, c.NewLock("order"), time.Second)
	lostTo(t, hold, rlock.ErrExpired)
	end := locktest.WaitToHear[rlock.HoldEnd](t, tr, 1)[0]
	require.ErrorIs(t, end.Err, rlock.ErrExpired)
	require.LessOrEqual(t, end.Margin, time.Duration(0))
	require.Len(t, locktest.Heard[rlock.HoldEnd](tr), 1)
}

func TestTracerHearsOfRenewals(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	restrict(t, s)
	tr := new(locktest.Tracer)
	const lease = 3 * time.Second
	c := newClient(t, s, rlock.Options{WatchdogLease: lease, Tracer: tr}, asUser)
	hold := take(t, c.NewLock("order"), rlock.Watchdog)
	renewed := locktest.WaitToHear[rlock.RenewalEnd](t, tr, 1)[0]
	require.NoError(t, renewed.Err)
	require.Equal(t, hold.Owner(), renewed.Owner)
	require.Equal(t, lease, renewed.Lease)
	require.Less(t, renewed.Margin, lease*2/3+lease/10, "of the lease before")
	require.Equal(t, hold.Owner(), renewed.Hold.(locktest.HoldTrace).Owner)

	s.Do(t, "ACL", "SETUSER", "app", "-pexpire")
	eventually(t, func() bool {
		for _, d := range locktest.Heard[rlock.RenewalEnd](tr) {
			refusal := new(rlock.ServerError)
			if errors.As(d.Err, &refusal) {
				return refusal.Code == "NOPERM" && d.Margin < lease
			}
		}
		return false
	}, "the refusal was not told")
	require.True(t, hold.Valid())
	s.Do(t, "ACL", "SETUSER", "app", "+pexpire")
	unlock(t, hold)
}

func TestTracerHearsOfAReleaseWithoutAReply(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, tr := traced(t, s, rlock.Options{CommandTimeout: 500 * time.Millisecond})
	hold := take(t, c.NewLock("order"), longLease)
	end := befall(t, s, "hangs")
	require.ErrorIs(t, hold.Unlock(t.Context()), rlock.ErrOutcomeUnknown)
	end()
	require.ErrorIs(t, only[rlock.HoldEnd](t, tr).Err, rlock.ErrOutcomeUnknown)
	waitUntilFree(t, s, "order")
}

func TestTracerHearsOfHoldsThatAreLeft(t *testing.T) {
	t.Parallel()
	c, tr := traced(t, redistest.Start(t), rlock.Options{})
	hold := take(t, c.NewLock("order"), longLease)
	text, err := hold.Detach()
	require.NoError(t, err)
	end := only[rlock.HoldEnd](t, tr)
	require.NoError(t, end.Err)
	require.True(t, end.Left)

	tr.Forget()
	hold, err = c.Attach(t.Context(), text, longLease)
	require.NoError(t, err)
	require.Equal(t, rlock.Attached, only[rlock.AcquireEnd](t, tr).How)
	require.Equal(t, hold.Owner(), only[rlock.HoldStart](t, tr).Owner)
	hold.Leave()
	require.True(t, only[rlock.HoldEnd](t, tr).Left)
	require.True(t, only[rlock.HoldEnd](t, tr).Last)

	tr.Forget()
	_, err = c.Attach(t.Context(), text, longLease) // it works once
	require.ErrorIs(t, only[rlock.AcquireEnd](t, tr).Err, rlock.ErrLost)
	require.ErrorIs(t, err, rlock.ErrLost)
}

func TestTracerHearsOfHoldsThatCloseEnds(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for _, releases := range []bool{false, true} {
		c, tr := traced(t, s, rlock.Options{ReleaseOnClose: releases})
		hold := take(t, c.NewLock(fmt.Sprint("order:", releases)), rlock.Watchdog)
		inner := takeWith(hold.Context(), t, c.NewLock(hold.Name()), rlock.Watchdog)
		closeClient(t, c)
		ends := locktest.Heard[rlock.HoldEnd](tr) // all was told before Close returned
		require.Len(t, ends, 2)
		for _, end := range ends {
			require.Equal(t, !releases, errors.Is(end.Err, rlock.ErrClosed))
			require.Equal(t, releases, end.Err == nil)
		}
		require.True(t, ends[1].Last)
		require.Error(t, inner.Err())
	}
}

// A tracer that blocks in the background keeps neither renewals nor the end of a hold.
func TestTracerThatBlocksDelaysNoRenewalAndNoLoss(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	blocked, unblock := make(chan struct{}, 1), make(chan struct{})
	var log logtest.Lines
	tr := &locktest.Tracer{Block: func(event any) {
		if _, renewal := event.(rlock.RenewalEnd); renewal {
			select {
			case blocked <- struct{}{}:
			default:
			}
			<-unblock
		}
	}}
	c := newClient(t, s, rlock.Options{WatchdogLease: 2 * time.Second, Tracer: tr,
		Logger: log.Logger()})
	hold := take(t, c.NewLock("order"), rlock.Watchdog)
	receive(t, blocked, "no renewal")
	for range 3 {
		waitForRenewal(t, []*rlock.Hold{hold})
	}
	require.Empty(t, log.With("blocks"))
	for range 4096 {
		rlock.TellRenewed(hold)
	}
	eventually(t, func() bool { return len(log.With("blocks")) == 1 }, "there is room for more")
	s.Do(t, "DEL", "order")
	lostTo(t, hold, rlock.ErrGone)
	unlock(t, take(t, c.NewLock("order"), longLease))

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, c.Close(ctx), context.Canceled, "Close waits for the tracer while it may")
	close(unblock)
	closeClient(t, c)
	ends := locktest.Heard[rlock.HoldEnd](tr)
	require.Len(t, ends, 2)
	require.ErrorIs(t, ends[1].Err, rlock.ErrLost, "told although renewals were left out")
	require.Less(t, len(locktest.Heard[rlock.RenewalEnd](tr)), 4200)
}

// A caller that finds others waiting is not in the queue yet when it tells its tracer.
func TestTracerThatBlocksAWaiterDelaysNoOther(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	var waits atomic.Int32
	blocked, unblock := make(chan struct{}), make(chan struct{})
	tr := &locktest.Tracer{Block: func(event any) {
		if _, is := event.(rlock.WaitStart); !is {
			return
		}
		if waits.Add(1) == 2 {
			close(blocked)
			<-unblock
		}
	}}
	c := newClient(t, s, rlock.Options{Tracer: tr})
	lock := c.NewLock("order")
	hold := take(t, lock, longLease)
	first := parkedWaiter(t, s, lock)
	second := lockInBackground(t.Context(), lock, longLease)
	receive(t, blocked, "the second does not wait")
	require.Equal(t, 1, rlock.Waiting(lock))
	unlock(t, hold)
	unlock(t, acquired(t, first))
	unlock(t, take(t, lock, longLease))
	close(unblock)
	unlock(t, acquired(t, second))
}

// plainTracer hears of nothing but calls.
type plainTracer struct{ *locktest.Tracer }

func (p plainTracer) HoldStart() {} // hides the method of the tracer, as those below
func (p plainTracer) WaitStart() {}
func (p plainTracer) RenewalEnd() {
}

func TestMultiTracerTellsSeveral(t *testing.T) {
	t.Parallel()
	require.Nil(t, rlock.MultiTracer())
	require.Nil(t, rlock.MultiTracer(nil, nil))
	first, second, plain := new(locktest.Tracer), new(locktest.Tracer), new(locktest.Tracer)
	require.Same(t, first, rlock.MultiTracer(nil, first))

	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{WatchdogLease: 2 * time.Second,
		Tracer: rlock.MultiTracer(first, plainTracer{plain}, nil, second)})
	lock := c.NewLock("order")
	hold := take(t, lock, rlock.Watchdog)
	_, err := lock.TryLock(t.Context(), 300*time.Millisecond, longLease)
	require.ErrorIs(t, err, rlock.ErrNotAcquired)
	for _, tr := range []*locktest.Tracer{first, second} {
		renewed := locktest.WaitToHear[rlock.RenewalEnd](t, tr, 1)[0]
		require.Equal(t, hold.Owner(), renewed.Hold.(locktest.HoldTrace).Owner)
	}
	unlock(t, hold)
	for _, tr := range []*locktest.Tracer{first, second} {
		require.Len(t, locktest.Heard[rlock.AcquireEnd](tr), 2)
		require.Len(t, locktest.Heard[rlock.WaitStart](tr), 1)
		require.Len(t, locktest.Heard[rlock.WaitEnd](tr), 1)
		only[rlock.HoldStart](t, tr)
		only[rlock.HoldEnd](t, tr)
	}
	require.Equal(t, []string{"AcquireStart", "AcquireEnd", "AcquireStart", "AcquireEnd"},
		steps(plain))
	begun, _ := hold.Context().Value(locktest.TraceKey{}).(rlock.HoldStart)
	require.Equal(t, hold.Owner(), begun.Owner)
}

func TestWaysToAcquireHaveNames(t *testing.T) {
	t.Parallel()
	names := map[rlock.How]string{rlock.NotAcquired: "not acquired", rlock.Free: "free",
		rlock.HandedOver: "handed over", rlock.Granted: "granted", rlock.Reentered: "reentered",
		rlock.Attached: "attached", -1: "unknown", 99: "unknown"}
	for how, name := range names {
		require.Equal(t, name, how.String())
	}
}

// hooked is a rueidis client that notes what commands' contexts have from a tracer, as rueidisotel
// looks for the caller's span there.
type hooked struct {
	rueidis.Client
	mu   sync.Mutex
	seen []any // guarded by mu
}

func (h *hooked) Do(ctx context.Context, command rueidis.Completed) rueidis.RedisResult {
	if slices.Contains([]string{"EVALSHA", "EVAL"}, command.Commands()[0]) {
		h.mu.Lock()
		h.seen = append(h.seen, ctx.Value(locktest.TraceKey{}))
		h.mu.Unlock()
	}
	return h.Client.Do(ctx, command)
}

func TestCommandsHaveTheContextOfTheTracer(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for _, byWorkers := range []bool{false, true} {
		h := &hooked{Client: s.Client(t)}
		c := newClientOn(t, h, rlock.Options{Anonymous: true, Tracer: new(locktest.Tracer)})
		if byWorkers {
			rlock.Detach(c)
		}
		warm(t, c, "warm")
		h.seen = nil
		hold := take(t, c.NewLock("order"), longLease)
		unlock(t, hold)
		h.mu.Lock()
		require.Len(t, h.seen, 2)
		require.IsType(t, rlock.AcquireStart{}, h.seen[0])
		require.IsType(t, rlock.HoldStart{}, h.seen[1])
		h.mu.Unlock()
	}
}
