package transport

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"holdfast/internal/wait"
)

// Call is a command under way, and the context that it is sent with.
type Call struct {
	calls   *Calls
	budget  wait.Budget // a copy of the caller's; guarded by calls.mu
	valued  bool        // Value was called; guarded by calls.mu
	sentAt  time.Time
	limit   time.Time // when the call ends; guarded by calls.mu once it is under way
	endless bool      // only the timeout ends it

	deadline time.Time     // a copy of limit that rueidis may read at any time
	done     chan struct{} // closed when the call ends before the command
	ended    atomic.Bool
	gathers  atomic.Bool // more than manyUnderway were under way; a dial may read it later
	phase    atomic.Uint32

	prev, next *Call // guarded by calls.mu
}

const (
	// minBudget is the time that a caller must have left to send a command itself.
	minBudget = 100 * time.Millisecond
	// mostUnderway is how many commands of callers and workers may be under way before callers stop to
	// send themselves. rueidis's queue has 1024 places, unless ClientOption.RingScaleEachConn says
	// otherwise. A caller that has begun to send must never find the queue full. To fit smaller ones
	// would cost twice the processor time beyond that number of commands: see docs/configuration.md.
	mostUnderway = 448
	// workersOnlyFor is the time after a blocked caller in which workers send all commands. So it is
	// after mostAbandoned callers of about as long have left without a reply.
	workersOnlyFor, mostAbandoned = time.Minute, 32
	// manyUnderway is how many commands may be under way before rueidis is made to write several
	// together. With fewer, Redis would be idle while they gather.
	manyUnderway = 16
	// grace is the extra time for a reply once a caller should return. A healthy server needs less.
	grace = 10 * time.Millisecond
)

// Begin returns the context for a command that the caller sends itself now, and then ends with
// [Call.End]. It returns nil if a worker must send the command; see [Detach].
func (c *Calls) Begin(b *wait.Budget, now time.Time) *Call {
	if !b.Until.IsZero() && b.Until.Sub(now) < min(minBudget, c.timeout) {
		return nil
	}
	limit, endless := now.Add(c.timeout), b.Ctx.Done() == nil
	if !b.Until.IsZero() && b.Until.Before(limit) {
		// A budget equal to the timeout began a moment ago, and ends that much earlier.
		limit, endless = b.Until, endless && limit.Sub(b.Until) < grace
	}
	k := c.recycled.Get().(*Call)
	c.mu.Lock()
	c.awaitIdleCommand()
	c.overlapped = c.overlapped || c.count > 0 || c.workers.Load() > 0 || c.idleCommand != nil
	// callersMaySend comes last, with mu held: an abandoned command makes it false before it leaves
	// the count.
	hasRoom := c.count+int(c.workers.Load()) < mostUnderway
	if !hasRoom || !c.callersMaySend(now) || !c.overlapped && !endless {
		c.mu.Unlock()
		c.recycled.Put(k)
		return nil
	}
	k.budget, k.valued = *b, false
	k.sentAt, k.limit, k.deadline, k.endless = now, limit, limit, endless
	k.phase.Store(phaseBegun)
	c.count++
	k.gathers.Store(c.count > manyUnderway)
	k.prev, k.next = c.underway.prev, &c.underway
	k.prev.next, k.next.prev = k, k
	if c.sweepAt.IsZero() || k.limit.Before(c.sweepAt) {
		c.setTimer(now, min(calmTick, k.limit.Sub(now)))
	}
	c.mu.Unlock()
	return k
}

// callersMaySend reports whether callers may send commands themselves.
func (c *Calls) callersMaySend(now time.Time) bool {
	since := now.Sub(c.began)
	return since-time.Duration(c.replied.Load()) <= recentReply &&
		since >= time.Duration(c.workersUntil.Load()) && c.dials.Load() == 0
}

// runCall runs a command and ends its call, even if foreign code ends the goroutine.
func runCall[T any](call *Call, command func(context.Context) (T, error),
) (value T, state State, err error) {
	err = ErrThrown
	defer func() { state, err = call.End(err) }()
	value, err = command(call)
	return value, state, err
}

// Value returns what the caller's context has until rueidis reads k: for hooks around its client,
// such as rueidisotel's. Later the caller may have returned. A hook may keep k, and ask again when
// the call has ended, so k is not recycled then: it would have the values of another caller.
func (k *Call) Value(key any) any {
	k.calls.mu.Lock()
	k.valued = true
	values := k.budget.Ctx
	k.calls.mu.Unlock()
	if values == nil || k.phase.Load() != phaseBegun {
		return nil
	}
	return values.Value(key)
}

// Err is not nil once the caller should return. rueidis calls it first if it has a connection. It
// calls Deadline and Done after that if the connection is up, and neither if it is not.
func (k *Call) Err() error {
	k.phase.CompareAndSwap(phaseBegun, phaseSending)
	switch {
	case k.phase.Load() == phaseDialing:
		return context.Canceled
	case k.ended.Load():
		return context.DeadlineExceeded
	}
	return nil
}

// Deadline returns the timeout of a caller that nothing else ends: rueidis may read from the socket
// itself then, if no other command is under way, but it closes the connection at a deadline.
func (k *Call) Deadline() (time.Time, bool) {
	k.phase.CompareAndSwap(phaseSending, phaseSent)
	return k.deadline, k.endless
}

// Done returns a channel that is closed when the caller should return. A dial calls it before Err,
// and ends at once: other callers share it, and would fail when this one leaves. A worker dials.
func (k *Call) Done() <-chan struct{} {
	if k.phase.CompareAndSwap(phaseBegun, phaseDialing) || k.phase.Load() == phaseDialing {
		return k.calls.closed
	}
	k.phase.CompareAndSwap(phaseSending, phaseSent)
	if k.gathers.Load() {
		// rueidis may just have woken its writer. It would run next, and write one command. A new
		// goroutine takes that turn, so that callers that are ready to send run before the writer.
		// rueidis's MaxFlushDelay is no substitute: see docs/performance.md.
		go func() {}()
	}
	return k.done
}

// End ends a call with the error of its command, and returns the outcome.
func (k *Call) End(err error) (State, error) {
	c := k.calls
	sentAt, left, state, phase := k.sentAt, k.ended.Load(), StateOf(err), k.phase.Load()
	switch {
	case err != nil && phase == phaseDialing, errors.Is(err, context.Canceled):
		state = NotSent // the dial was started by this call or by another one
	case phase == phaseSending && connectionLost(err):
		state = NotSent // there was no connection any more
	case state == Abandoned, state == Unconfirmed && left:
		state, err = Abandoned, ErrNoReply
	}
	c.recordReply(sentAt, state) // before another call may begin
	c.mu.Lock()
	k.prev.next, k.next.prev = k.next, k.prev
	k.prev, k.next = nil, nil
	c.count-- // the timer stays set: setting it for each command costs more than its wake-ups
	k.budget = wait.Budget{}
	valued := k.valued
	if state == Abandoned {
		c.abandon(time.Now())
	}
	c.mu.Unlock()
	// Not one that sweep has ended, even a moment ago; and a dial may keep a derived context.
	if !k.ended.Load() && !valued && (phase == phaseSending || phase == phaseSent) {
		c.recycled.Put(k)
	}
	if left && time.Since(sentAt)-c.timeout > c.timeout/4 {
		c.workersUntil.Store(int64(time.Since(c.began) + workersOnlyFor))
	}
	return state, err
}

// abandon notes that a call has ended without a reply. c.mu must be held.
func (c *Calls) abandon(now time.Time) {
	if now.Sub(c.abandonedAt) > workersOnlyFor {
		c.abandoned, c.abandonedAt = 0, now
	}
	c.abandoned++
	if c.abandoned >= mostAbandoned {
		c.workersUntil.Store(int64(now.Sub(c.began) + workersOnlyFor))
	}
}
