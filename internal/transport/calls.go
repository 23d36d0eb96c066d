package transport

import (
	"context"
	"errors"
	"math"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/internal/wait"
	"holdfast/lua"
)

// State is the outcome of a command:
//
//	sent ──▶ Answered     the server executed it
//	     ──▶ NotSent      its caller would have had to dial first
//	     ──▶ Refused      the server did not execute it
//	     ──▶ Unconfirmed  its connection was lost: it was executed, or never will be
//	     ──▶ Abandoned    its caller left: it may be executed at any time, without notice
//	     ──▶ Detached     its caller left: a callback gets the outcome
type State uint8

// The outcomes of a command.
const (
	Answered State = iota
	Refused
	Unconfirmed
	Abandoned
	Detached
	NotSent
)

// ErrNoAnswer is the error of a command whose caller left before the reply.
var ErrNoAnswer = &lua.Error{Class: lua.Unknown, Message: "no answer from Redis in time",
	Advice: "is the server up, is it busy, and is rueidis.ClientOption.TLSConfig right for it?"}

// Calls sends the commands of a client. All methods are safe for concurrent use.
//
// A caller sends its command itself, with a [Call] as its context. That context ends when the
// budget of the caller ends or the command has taken its time-out. rueidis then returns at once and
// keeps the connection. A command allocates nothing: calls are recycled, and they share one timer.
//
// Only two things could block a caller for longer: a dial, which rueidis shares between callers,
// and a connection with a full queue. A worker sends the command instead, and the caller waits for
// the worker, in these cases:
//   - no reply came within the last moments, or the connection turns out to be lost;
//   - very many commands are under way;
//   - a caller was blocked all the same within the last minute;
//   - the caller has little time left: such callers leave often, and a worker learns the outcome.
type Calls struct {
	group   *wait.Group
	timeout time.Duration
	began   time.Time

	answered atomic.Int64 // when the latest command with a reply was sent, in ns since began
	detached atomic.Int64 // until then workers send all commands, in ns since began
	recycled sync.Pool

	mu       sync.Mutex
	underway Call // the head of a ring of calls, oldest first; guarded by mu
	count    int  // guarded by mu
	armed    bool // the timer is running; guarded by mu
	timer    *time.Timer
}

const (
	// proven limits how long a reply shows that the connection is up.
	proven = 100 * time.Millisecond
	// minBudget is the time that a caller must have left to send a command itself.
	minBudget = 100 * time.Millisecond
	// mostUnderway limits the commands that callers send themselves at a time: half of rueidis's
	// queue.
	mostUnderway = 512
	// workersOnly is the time after a blocked caller in which workers send all commands.
	workersOnly = time.Minute
	// tick is how often calls under way are checked while one of them is slow, and firstTick how
	// long after the first of them otherwise: a thread that waits for the network with a short timer
	// pending costs more than all else here.
	tick      = 2 * time.Millisecond
	firstTick = 50 * time.Millisecond
	slow      = 20 * time.Millisecond
	// grace is the extra time for a reply once a caller should return: a healthy server sends it in
	// that time, and the outcome is known.
	grace = 10 * time.Millisecond
)

// NewCalls returns the calls of a client whose tasks are in group. timeout bounds each command. On
// a cluster workers send all commands: a reply of one node says nothing about the others.
func NewCalls(group *wait.Group, timeout time.Duration, cluster bool) *Calls {
	c := &Calls{group: group, timeout: timeout, began: time.Now()}
	c.underway.prev, c.underway.next = &c.underway, &c.underway
	c.recycled.New = func() any { return &Call{calls: c, done: make(chan struct{})} }
	c.answered.Store(int64(-2 * proven))
	if cluster {
		c.Detach()
	}
	return c
}

// Detach makes workers send all commands from now on.
func (c *Calls) Detach() { c.detached.Store(math.MaxInt64) }

// Call is a command under way, and the context that it is sent with.
type Call struct {
	calls   *Calls
	ctx     context.Context // of the caller
	closing <-chan struct{} // nil if it does not end the caller's budget
	sent    time.Time
	limit   time.Time // when the call ends; guarded by calls.mu once it is under way
	endless bool      // only the time-out ends it

	deadline time.Time // a copy of limit that rueidis may read at any time

	done  chan struct{} // closed when the call ends before the command
	ended atomic.Bool
	phase atomic.Uint32

	prev, next *Call // guarded by calls.mu
}

// The phases of a call.
const (
	begun   = iota // rueidis has not read the context yet
	sending        // rueidis has a connection
	dialing        // rueidis has none
)

var _ context.Context = (*Call)(nil)

// Err returns context.DeadlineExceeded once the caller should return. rueidis calls it before Done
// if it has a connection.
func (k *Call) Err() error {
	k.phase.CompareAndSwap(begun, sending)
	switch {
	case k.phase.Load() == dialing:
		return context.Canceled
	case k.ended.Load():
		return context.DeadlineExceeded
	}
	return nil
}

// Done returns a channel that is closed when the caller should return. A dial calls it before Err,
// and is ended at once: other callers share that dial, and would fail when this caller leaves. A
// worker dials instead.
func (k *Call) Done() <-chan struct{} {
	if k.phase.CompareAndSwap(begun, dialing) || k.phase.Load() == dialing {
		return closed
	}
	return k.done
}

// Value returns nil.
func (k *Call) Value(any) any { return nil }

// closed is a closed channel.
var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Deadline returns the time-out for a caller that nothing else ends. rueidis may then read from the
// socket itself, as long as no other command is under way. For other callers there is none, since
// rueidis closes the connection at a deadline.
func (k *Call) Deadline() (time.Time, bool) { return k.deadline, k.endless }

// Begin returns the context for a command that the caller sends itself, and then ends with
// [Call.End]. It returns nil if a worker must send the command; see [Detach].
func (c *Calls) Begin(b *wait.Budget) *Call {
	now := time.Now()
	if !c.direct(b, now) {
		return nil
	}
	k := c.recycled.Get().(*Call)
	k.ctx, k.closing, k.sent, k.limit = b.Ctx, b.Closes, now, now.Add(c.timeout)
	k.phase.Store(begun)
	k.endless = b.Ctx.Done() == nil
	if !b.Until.IsZero() && b.Until.Before(k.limit) {
		// A budget equal to the time-out began a moment ago, and ends that much earlier.
		k.endless = k.endless && k.limit.Sub(b.Until) < grace
		k.limit = b.Until
	}
	k.deadline = k.limit
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.count == mostUnderway {
		return nil
	}
	c.count++
	k.prev, k.next = c.underway.prev, &c.underway
	k.prev.next, k.next.prev = k, k
	if !c.armed {
		c.armed = true
		c.arm(firstTick, k.limit)
	}
	return k
}

// direct reports whether a caller sends its command itself.
func (c *Calls) direct(b *wait.Budget, now time.Time) bool {
	if !b.Until.IsZero() && b.Until.Sub(now) < min(minBudget, c.timeout) {
		return false
	}
	since := now.Sub(c.began)
	return since-time.Duration(c.answered.Load()) <= proven &&
		since >= time.Duration(c.detached.Load())
}

// End ends a call with the error of its command, and returns the outcome.
func (k *Call) End(err error) (State, error) {
	c := k.calls
	c.mu.Lock()
	k.prev.next, k.next.prev = k.next, k.prev
	k.prev, k.next = nil, nil
	c.count--
	c.mu.Unlock()
	sent, left := k.sent, k.ended.Load()
	// The dial was started by this call or by another one.
	dials := err != nil && k.phase.Load() == dialing || errors.Is(err, context.Canceled)
	k.ctx, k.closing = nil, nil
	if !left && k.phase.Load() == sending { // a dial may keep a derived context for longer
		c.recycled.Put(k)
	}
	if dials {
		c.answered.Store(int64(-2 * proven))
		return NotSent, err
	}
	c.heard(sent, err)
	if now := time.Now(); now.Sub(sent) > c.timeout+c.timeout/4 {
		c.detached.Store(int64(now.Sub(c.began) + workersOnly))
	}
	state := StateOf(err)
	if state == Unconfirmed && (left || timedOut(err)) {
		return Abandoned, ErrNoAnswer // the context that ended was not the caller's
	}
	return state, err
}

// arm starts the timer for the calls under way, so that it fires after a pause, or at latest if that
// is earlier and not zero. c.mu must be held.
func (c *Calls) arm(pause time.Duration, latest time.Time) {
	if !latest.IsZero() {
		pause = min(pause, max(0, time.Until(latest)))
	}
	if c.timer == nil {
		c.timer = time.AfterFunc(pause, c.sweep)
	} else {
		c.timer.Reset(pause)
	}
}

// sweep ends the calls whose callers should return: at their limit, or a moment after their context
// has ended or their client closes.
func (c *Calls) sweep() {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	var next time.Time // when the first remaining call ends
	for k := c.underway.next; k != &c.underway; k = k.next {
		if k.ended.Load() {
			continue
		}
		if end := now.Add(grace); end.Before(k.limit) && k.over() {
			k.limit = end
		}
		if !now.Before(k.limit) {
			k.ended.Store(true)
			close(k.done)
		} else if next.IsZero() || k.limit.Before(next) {
			next = k.limit
		}
	}
	if c.armed = c.count > 0; !c.armed {
		return
	}
	pause := firstTick
	if now.Sub(c.underway.next.sent) > slow {
		// Many slow calls mean that the server hangs, and are checked less often.
		pause = tick + time.Duration(c.count)*time.Microsecond
	}
	c.arm(pause, next)
}

// over reports whether the context or the closing of the client has ended the budget of the caller.
func (k *Call) over() bool {
	select {
	case <-k.closing:
		return true
	default:
		return k.ctx.Err() != nil
	}
}

// heard records whether a command sent at the given time got a reply.
func (c *Calls) heard(sent time.Time, err error) {
	if StateOf(err) == Unconfirmed {
		c.answered.Store(int64(-2 * proven))
	} else {
		c.answered.Store(int64(sent.Sub(c.began)))
	}
}

// StateOf returns the outcome of a command with the given error.
func StateOf(err error) State {
	switch {
	case err == nil:
		return Answered
	case lua.ClassOf(err) == lua.Unknown:
		return Unconfirmed
	default:
		return Refused
	}
}

// timedOut reports whether a command got no reply before a deadline: that of its context, or
// rueidis's.
func timedOut(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)
}

// Detach sends a command from a worker, and waits for its outcome. If b ends first it returns at
// once, with [Detached], and late is called with the outcome when it is known. Otherwise late is
// not called.
func Detach[T any](
	c *Calls, b *wait.Budget, command func(context.Context) (T, error), late func(T, error),
) (value T, _ State, err error) {
	type outcome struct {
		value T
		err   error
	}
	outcomes, answer := make(chan outcome, 1), make(chan struct{})
	var decided atomic.Bool // set by the reply or by the caller that leaves, whichever is first
	started := c.group.Go(func() {
		sent := time.Now()
		value, err := command(context.Background())
		// A caller has started a dial and ended it, and perhaps others after it.
		for tries := 1; errors.Is(err, context.Canceled) && tries < 10; tries++ {
			time.Sleep(time.Millisecond << tries)
			value, err = command(context.Background())
		}
		c.heard(sent, err)
		err = Unexplained(err)
		if decided.CompareAndSwap(false, true) {
			outcomes <- outcome{value, err}
			close(answer)
		} else {
			late(value, err)
		}
	})
	if !started { // the client is closed: nothing may run in the background
		value, err = command(context.Background())
		return value, StateOf(err), err
	}
	if !b.Wait(answer) && decided.CompareAndSwap(false, true) {
		return value, Detached, ErrNoAnswer
	}
	o := <-outcomes
	return o.value, StateOf(o.err), o.err
}

// Unexplained returns err for a command without a deadline. It drops a deadline error, which
// belongs to another command on the same lost connection.
func Unexplained(err error) error {
	if StateOf(err) == Unconfirmed && errors.Is(err, context.DeadlineExceeded) {
		return ErrNoAnswer
	}
	return err
}

// Do sends a command from the caller's goroutine if that cannot block it, and otherwise like
// [Detach].
func Do[T any](
	c *Calls, b *wait.Budget, command func(context.Context) (T, error), late func(T, error),
) (T, State, error) {
	if call := c.Begin(b); call != nil {
		value, err := command(call)
		if state, err := call.End(err); state != NotSent {
			return value, state, err
		}
	}
	return Detach(c, b, command, late)
}
