package transport

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"holdfast/internal/wait"
)

// Call is a command that its caller sends, and the context of that command.
type Call struct {
	commandContext
	budget     wait.Budget // a copy of the caller's; guarded by calls.mu
	sentAt     time.Time
	limit      time.Time // when the call ends; guarded by calls.mu once it is under way
	prev, next *Call     // guarded by calls.mu
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
	if c.idleCommand != nil {
		c.awaitIdleCommand()
	}
	c.overlapped = c.overlapped || c.count > 0 || c.workers > 0 || c.idleCommand != nil
	// workersUntil is read with mu held: an abandoned command sets it before it leaves the count.
	since := now.Sub(c.began)
	up := since-time.Duration(c.replied.Load()) <= recentReply
	blocked := since < time.Duration(c.workersUntil.Load()) || c.dials.Load() > 0
	hasRoom := c.count+c.workers < mostUnderway
	if !up || blocked || !hasRoom || !c.overlapped && !endless {
		c.mu.Unlock()
		c.recycled.Put(k)
		return nil
	}
	k.budget, k.values, k.valued = *b, b.Ctx, false
	k.sentAt, k.limit, k.deadline, k.endless = now, limit, limit, endless
	k.start.Store(phaseBegun)
	k.progress.Store(phaseBegun)
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

// runCall runs a command and ends its call, even if foreign code ends the goroutine.
func runCall[T any](call *Call, command func(context.Context) (T, error),
) (value T, state State, err error) {
	err = ErrThrown
	defer func() { state, err = call.End(err) }()
	value, err = command(call)
	return value, state, err
}

// End ends a call with the error of its command, and returns the outcome.
func (k *Call) End(err error) (State, error) {
	c := k.calls
	sentAt, left, state := k.sentAt, k.ended.Load(), Executed
	if err != nil {
		state, err = k.failed(err, left)
	}
	c.recordReply(sentAt, state) // before another call may begin
	c.mu.Lock()
	k.prev.next, k.next.prev = k.next, k.prev
	k.prev, k.next = nil, nil
	c.count-- // the timer stays set: setting it for each command costs more than its wake-ups
	k.budget, k.values = wait.Budget{}, nil
	valued := k.valued
	if state == Abandoned {
		c.abandon(time.Now())
	}
	c.mu.Unlock()
	// Not one that sweep has ended, even a moment ago; and a dial may keep a derived context.
	if !k.ended.Load() && !valued && k.start.Load() == phaseSending {
		c.recycled.Put(k)
	}
	if left && time.Since(sentAt)-c.timeout > c.timeout/4 {
		c.workersUntil.Store(int64(time.Since(c.began) + workersOnlyFor))
	}
	return state, err
}

// failed returns the outcome of a command with an error. left says that its call ended before it.
func (k *Call) failed(err error, left bool) (State, error) {
	state := StateOf(err)
	switch {
	case k.start.Load() == phaseDialing, errors.Is(err, context.Canceled):
		return NotSent, err // the dial was started by this call or by another one
	case k.progress.Load() == phaseSending && connectionLost(err):
		return NotSent, err // there was no connection any more
	case state == Abandoned, state == Unconfirmed && left:
		return Abandoned, ErrNoReply
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

// Calls under way are checked every calmTick, and about every tick once a check has found one
// slower than slow. Processes that wake up more often take the processor from Redis.
const tick, calmTick, slow = 2 * time.Millisecond, 200 * time.Millisecond, 20 * time.Millisecond

// sweep ends calls: at their limit, or a grace after it has found that their budget ended early.
func (c *Calls) sweep() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	pause := calmTick
	if now.Sub(c.underway.next.sentAt) > slow {
		// Many slow calls mean that the server hangs, and are checked less often.
		pause = tick + time.Duration(c.count)*time.Microsecond
	}
	for k := c.underway.next; k != &c.underway; k = k.next {
		if end := now.Add(grace); end.Before(k.limit) &&
			(k.budget.Closing() || k.budget.Ctx.Err() != nil) {
			k.limit = end
		}
		if left := k.limit.Sub(now); left > 0 {
			pause = min(pause, left)
		} else if k.ended.CompareAndSwap(false, true) {
			close(k.done)
		}
	}
	c.sweepAt = time.Time{}
	if c.count > 0 {
		c.setTimer(now, pause)
	}
}

// setTimer makes sweep run a pause after now, which may be long ago. c.mu must be held.
func (c *Calls) setTimer(now time.Time, pause time.Duration) {
	c.sweepAt = now.Add(pause)
	c.timer.Reset(time.Until(c.sweepAt))
}

// commandContext is the context of a command. It ends with the [Call] of a caller that sends the
// command itself. For a worker it never ends.
//
// It learns how far rueidis is with the command from the methods that rueidis calls; see the
// phases.
type commandContext struct {
	calls    *Calls
	start    atomic.Uint32 // the first phase after phaseBegun; phaseSending once a worker has ended it
	progress atomic.Uint32 // the latest phase, without phaseDialing

	values context.Context // the caller's; nil once the command has ended; guarded by calls.mu
	valued bool            // Value was called; guarded by calls.mu

	// These are for the caller that sends the command itself.
	done     chan struct{} // closed when the call ends before the command; nil for a worker
	ended    atomic.Bool
	gathers  atomic.Bool // more than manyUnderway were under way; a dial may read it later
	endless  bool        // only the timeout ends the call
	deadline time.Time   // a copy of Call.limit that rueidis may read at any time
}

// The phases of a command. Its context concludes them from the methods that rueidis has called, and
// from their order:
//   - Err before anything else: rueidis has a connection;
//   - Done before Err: rueidis dials, or something else waits before a command is sent;
//   - Deadline or Done after Err: the connection is up, and rueidis is about to send.
//
// rueidis does not document this order. TestRueidisCallsTheContextInThisOrder in rueidis_test.go
// records it, and fails if an upgrade of rueidis changes it.
const (
	phaseBegun   = iota // rueidis has not read the context yet
	phaseDialing        // rueidis has no connection
	phaseSending        // rueidis has one, which may have been lost, or could not be opened
	phaseSent           // rueidis has sent the command, or is about to
)

// Value returns what the caller's context has, for hooks around rueidis, such as rueidisotel's. For
// a worker it does so until the command has ended. For a caller that sends the command itself it
// does so until rueidis reads k, because later the caller may have returned. A hook may keep k, and
// ask again when the command has ended. A [Call] is not recycled then, because it would have the
// values of another caller.
func (k *commandContext) Value(key any) any {
	k.calls.mu.Lock()
	k.valued = true
	values := k.values
	k.calls.mu.Unlock()
	if values == nil || k.done != nil && k.start.Load() != phaseBegun {
		return nil
	}
	return values.Value(key)
}

// Err is not nil once the caller should return. rueidis calls it first if it has a connection. It
// calls Deadline and Done after that if the connection is up, and neither if it is not.
func (k *commandContext) Err() error {
	k.start.CompareAndSwap(phaseBegun, phaseSending)
	k.progress.CompareAndSwap(phaseBegun, phaseSending)
	switch {
	case k.done == nil:
		return nil
	case k.start.Load() == phaseDialing:
		return context.Canceled
	case k.ended.Load():
		return context.DeadlineExceeded
	}
	return nil
}

// Deadline returns the timeout of a caller that nothing else ends: rueidis may read from the socket
// itself then, if no other command is under way, but it closes the connection at a deadline.
func (k *commandContext) Deadline() (time.Time, bool) {
	k.progress.CompareAndSwap(phaseSending, phaseSent)
	return k.deadline, k.endless
}

// Done returns a channel that is closed when the caller should return; nil for a worker. A dial
// calls it before Err. The dial of a worker is counted. That of a caller ends at once: other
// callers share it, and would fail when this one leaves. A worker dials.
func (k *commandContext) Done() <-chan struct{} {
	dials := k.start.CompareAndSwap(phaseBegun, phaseDialing)
	switch {
	case k.done == nil && dials:
		k.calls.dials.Add(1)
	case k.done != nil && (dials || k.start.Load() == phaseDialing):
		return k.calls.closed
	}
	k.progress.CompareAndSwap(phaseSending, phaseSent)
	if k.gathers.Load() {
		// rueidis may just have woken its writer. It would run next, and write one command. A new
		// goroutine takes that turn, so that callers that are ready to send run before the writer.
		// rueidis's MaxFlushDelay is no substitute: see docs/performance.md.
		go func() {}()
	}
	return k.done
}

// end is called when the command of a worker has ended. Its dial is not counted from then on.
func (k *commandContext) end() {
	if k.start.Swap(phaseSending) == phaseDialing {
		k.calls.dials.Add(-1)
		// Perhaps it was: rueidis dials anew without an error if it noticed the loss before.
		k.calls.reportLost()
	}
}
