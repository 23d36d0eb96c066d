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
	node       *Node       // of a cluster, which the command is for; else nil
	budget     wait.Budget // a copy of the caller's; guarded by calls.mu
	sentAt     time.Time
	limit      time.Time // when the call ends; guarded by calls.mu once it is under way
	prev, next *Call     // guarded by calls.mu
}

const (
	// minBudget is the shortest time left with which a caller sends a command itself.
	minBudget = 100 * time.Millisecond
	// mostUnderway limits the commands under way of callers and workers. Beyond that, callers no
	// longer send commands themselves. The queue of rueidis has 1024 places, unless
	// ClientOption.RingScaleEachConn is set. A caller that has begun to send must never find the queue
	// full. A limit for smaller queues would cost twice the processor time beyond that number of
	// commands. See docs/configuration.md.
	mostUnderway = 448
	// workersOnlyFor is how long workers send all commands after a caller was blocked, or after
	// mostAbandoned callers left without a reply within about that time.
	workersOnlyFor, mostAbandoned = time.Minute, 32
	// manyUnderway is how many commands may be under way before the client makes rueidis write several
	// together. With fewer commands, Redis would be idle while rueidis gathers them.
	manyUnderway = 16
	// grace is the extra time for a reply once a caller should return. A healthy server needs less.
	grace = 10 * time.Millisecond
)

// Begin returns the context for a command that the caller sends itself now. The caller then ends
// the call with [Call.End]. Begin returns nil if a worker must send the command. See
// [SendByWorker]. The command is for lock, or for several locks if lock is "".
func (c *Calls) Begin(b *wait.Budget, now time.Time, lock string) *Call {
	node, replied := (*Node)(nil), &c.replied
	if c.ready != nil {
		if lock != "" && c.nodeOf != nil {
			node = c.nodeOf(lock)
		}
		if node == nil {
			return nil
		}
		if node.client == nil {
			c.moved() // rueidis may have found the node meanwhile
			return nil
		}
		replied = &node.replies // the reply of one node says nothing about the others
	}
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
	// Begin reads workersUntil with mu held, because an abandoned command sets workersUntil before the
	// command leaves the count.
	since := now.Sub(c.began)
	up := replied.age(now) <= recentReply
	blocked := since < time.Duration(c.workersUntil.Load()) || c.dials.Load() > 0
	hasRoom := c.count+c.workers < mostUnderway
	if !up || blocked || !hasRoom || !c.overlapped && !endless {
		c.mu.Unlock()
		c.recycled.Put(k)
		return nil
	}
	k.budget, k.values, k.valued, k.node = *b, b.Ctx, false, node
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

// Send runs a command with the call as its context, and ends the call, even if a hook around
// rueidis ends the goroutine.
func Send[T any](k *Call, command func(context.Context) (T, error),
) (value T, state State, err error) {
	err = ErrThrown
	defer func() { state, err = k.End(err) }()
	value, err = command(k)
	return value, state, err
}

// End ends a call with the error of its command, and returns the outcome.
func (k *Call) End(err error) (State, error) {
	c, node := k.calls, k.node
	sentAt, left, state := k.sentAt, k.ended.Load(), Executed
	if err != nil {
		state, err = k.failed(err, left)
	}
	c.recordReply(node, sentAt, state) // before another call may begin
	if node != nil && state == NotSent {
		c.moved()
	}
	c.mu.Lock()
	k.prev.next, k.next.prev = k.next, k.prev
	k.prev, k.next = nil, nil
	c.count-- // the timer stays set, because setting it costs more than its wake-ups
	k.budget, k.values, k.node = wait.Budget{}, nil, nil
	valued := k.valued
	if state == Abandoned {
		c.abandon(time.Now())
	}
	c.mu.Unlock()
	// A call that sweep has ended, even a moment ago, is not recycled. After a dial, the call is not
	// recycled either, because the dial may keep a context that derives from it.
	if !k.ended.Load() && !valued && k.start.Load() == phaseSending {
		c.recycled.Put(k)
	}
	if left && time.Since(sentAt)-c.timeout > c.timeout/4 {
		c.workersUntil.Store(int64(time.Since(c.began) + workersOnlyFor))
	}
	return state, err
}

// failed returns the outcome of a command with an error. left says that the call ended before the
// command.
func (k *Call) failed(err error, left bool) (State, error) {
	state := StateOf(err)
	switch {
	case k.start.Load() == phaseDialing, errors.Is(err, context.Canceled):
		return NotSent, err // this call or another call started the dial
	case k.progress.Load() == phaseSending && connectionLost(err):
		return NotSent, err // the connection was lost before
	case k.node != nil && redirected(err):
		return NotSent, err
	case state == Abandoned, state == Unconfirmed && left:
		return Abandoned, ErrNoReply
	}
	return state, err
}

// abandon records that a call has ended without a reply. c.mu must be held.
func (c *Calls) abandon(now time.Time) {
	if now.Sub(c.abandonedAt) > workersOnlyFor {
		c.abandoned, c.abandonedAt = 0, now
	}
	c.abandoned++
	if c.abandoned >= mostAbandoned {
		c.workersUntil.Store(int64(now.Sub(c.began) + workersOnlyFor))
	}
}

// sweep checks the calls under way every calmTick, and about every tick once it has found a call
// slower than slow. Processes that wake up more often take the processor from Redis.
const tick, calmTick, slow = 2 * time.Millisecond, 200 * time.Millisecond, 20 * time.Millisecond

// sweep ends calls at their limit. If a budget ends early, sweep ends its call a grace after it has
// noticed.
func (c *Calls) sweep() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	pause := calmTick
	if now.Sub(c.underway.next.sentAt) > slow {
		// Many slow calls mean that the server hangs, so sweep checks them less often.
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

// commandContext is the context of a command. If the caller sends the command itself, the context
// ends with the [Call]. If a worker sends the command, the context never ends.
//
// The context concludes how far rueidis is with the command from the methods that rueidis calls.
// See the phases.
type commandContext struct {
	calls    *Calls
	start    atomic.Uint32 // the first phase after phaseBegun; phaseSending after a worker's command
	progress atomic.Uint32 // the latest phase, without phaseDialing

	values context.Context // the caller's; nil once the command has ended; guarded by calls.mu
	valued bool            // Value was called; guarded by calls.mu

	// These are for the caller that sends the command itself.
	done     chan struct{} // closed when the call ends before the command; nil for a worker
	ended    atomic.Bool
	gathers  atomic.Bool // more than manyUnderway were under way; a dial may read it later
	endless  bool        // nothing but the timeout ends the call
	deadline time.Time   // a copy of Call.limit that rueidis may read at any time
}

// The phases of a command. Its context concludes the phase from the methods that rueidis has
// called, and from their order:
//   - Err before anything else: rueidis has a connection;
//   - Done before Err: rueidis dials, or something else waits before a command is sent;
//   - Deadline or Done after Err: the connection is up, and rueidis is about to send.
//
// rueidis does not document this order. TestRueidisCallsTheContextInThisOrder in rueidis_test.go
// records it, and fails if an upgrade of rueidis changes it.
const (
	phaseBegun   = iota // rueidis has not read the context yet
	phaseDialing        // rueidis has no connection
	phaseSending        // rueidis has a connection, perhaps a lost or failed one
	phaseSent           // rueidis has sent the command, or is about to
)

// Value returns a value of the caller's context, for hooks around rueidis, such as rueidisotel. For
// a worker, Value does so until the command has ended. For a caller that sends the command itself,
// Value does so until rueidis reads k, because later the caller may have returned. A hook may keep
// k, and call Value again when the command has ended. So a [Call] is not recycled after a call of
// Value, because it would return the values of another caller.
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

// Err is not nil once the caller should return. If rueidis has a connection, rueidis calls Err
// first. If the connection is up, rueidis then calls Deadline and Done.
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

// Deadline returns the timeout if nothing else ends the call. Then rueidis may read from the socket
// itself, if no other command is under way. At a deadline, rueidis closes the connection.
func (k *commandContext) Deadline() (time.Time, bool) {
	k.progress.CompareAndSwap(phaseSending, phaseSent)
	return k.deadline, k.endless
}

// Done returns a channel that is closed when the caller should return; nil for a worker. rueidis
// calls Done before Err if it dials. The context counts the dial of a worker. It ends the dial of a
// caller at once, because other callers share the dial, and would fail when this caller leaves. A
// worker dials instead.
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
		// rueidis may just have woken its writer. The writer would run next, and write a single command.
		// A new goroutine takes the place of the writer, so callers that are ready to send run before the
		// writer. rueidis's MaxFlushDelay does not replace this. See docs/performance.md.
		go func() {}()
	}
	return k.done
}

// end ends the command of a worker. From then on the dial of the command does not count.
func (k *commandContext) end() {
	if k.start.Swap(phaseSending) == phaseDialing {
		k.calls.dials.Add(-1)
		// Perhaps a connection was lost, because rueidis dials again without an error if it has noticed
		// the loss before.
		k.calls.reportLost()
	}
}
