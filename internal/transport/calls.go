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

// State is what became of a command:
//
//	sent ──▶ Answered     the server did what it was asked to
//	     ──▶ NotSent      its caller would have had to dial first
//	     ──▶ Refused      the server did not do it
//	     ──▶ Unconfirmed  its connection was lost: it was executed, or never will be
//	     ──▶ Abandoned    its caller left: it may be executed at any time, and nobody hears of that
//	     ──▶ Detached     its caller left: whoever was named hears of the outcome
type State uint8

// The states of a command that its caller does not wait for any more.
const (
	Answered State = iota
	Refused
	Unconfirmed
	Abandoned
	Detached
	NotSent
)

// ErrNoAnswer is the error of a command that its caller left.
var ErrNoAnswer = &lua.Error{Class: lua.Unknown, Message: "no answer from Redis in time",
	Advice: "is the server up, is it busy, and is rueidis.ClientOption.TLSConfig right for it?"}

// Calls sends the commands of a client. All methods are safe for concurrent use.
//
// A command is sent from its caller's goroutine, with a [Call] as its context: that ends when the
// budget of the caller ends or the command has taken Timeout. rueidis returns then at once, and the
// connection stays. Nothing is made for a command: calls are recycled, and one timer looks after
// all that take longer than a moment.
//
// Only two things could keep a caller longer: a dial, which rueidis shares between callers, and a
// connection with a full queue. So a worker sends the command instead, and the caller waits for the
// worker, if no answer has come within the last moments or the connection turns out to be lost, if
// very many commands are under way, and for a minute after a caller was kept all the same. The same
// is done for callers who leave soon: they leave often, and a worker hears what became of their
// commands.
type Calls struct {
	group   *wait.Group
	timeout time.Duration
	began   time.Time

	answered atomic.Int64 // when the latest answered command was sent, in nanoseconds since began
	detached atomic.Int64 // until when workers send all commands, in nanoseconds since began
	recycled sync.Pool

	mu       sync.Mutex
	underway Call // the head of a ring of calls, in the order of their start; guarded by mu
	count    int  // guarded by mu
	armed    bool // the timer is running; guarded by mu
	timer    *time.Timer
}

const (
	// proven is how long an answer proves that the connection is up.
	proven = 100 * time.Millisecond
	// minBudget is how much time a caller must have left to send a command itself.
	minBudget = 100 * time.Millisecond
	// mostUnderway is how many commands are sent by callers at a time: half of rueidis's queue.
	mostUnderway = 512
	// workersOnly is how long workers send all commands after a caller was kept.
	workersOnly = time.Minute
	// tick is how often calls under way are looked after.
	tick = 2 * time.Millisecond
	// grace is how long a caller that should come back waits for an answer still: a server that is
	// well gives it, and the outcome is known.
	grace = 10 * time.Millisecond
)

// NewCalls returns the calls of a client with the tasks in group. timeout is how long a command
// takes at most. On a cluster workers send all commands: an answer of one node proves nothing of
// others.
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

// Detach has workers send all commands from now on.
func (c *Calls) Detach() { c.detached.Store(math.MaxInt64) }

// Call is a command under way, and the context that it is sent with.
type Call struct {
	calls   *Calls
	ctx     context.Context // of the caller
	closing <-chan struct{} // as far as it ends the caller's budget
	sent    time.Time
	limit   time.Time // when it ends; guarded by calls.mu once it is under way
	endless bool      // nothing but the time-out ends it

	deadline time.Time // limit, as rueidis may ask for it at any time

	done  chan struct{} // closed when it ends before the command
	ended atomic.Bool
	phase atomic.Uint32

	prev, next *Call // guarded by calls.mu
}

// The phases of a call.
const (
	begun   = iota // nobody has looked at it
	sending        // rueidis has a connection
	dialing        // rueidis has none
)

var _ context.Context = (*Call)(nil)

// Err returns context.DeadlineExceeded once the caller should come back. rueidis asks for it first
// when it has a connection.
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

// Done is closed when the caller should come back. A dial asks for it before rueidis has asked for
// Err: it is ended at once. It is shared by all who need the connection, and would end for them
// when this caller leaves; a worker dials instead.
func (k *Call) Done() <-chan struct{} {
	if k.phase.CompareAndSwap(begun, dialing) || k.phase.Load() == dialing {
		return closed
	}
	return k.done
}

// Value returns nil.
func (k *Call) Value(any) any { return nil }

// closed is closed.
var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Deadline returns the time-out for a caller that nothing else ends: then rueidis may wait on the
// socket itself, as long as no other command is under way. For others there is none, since rueidis
// closes the connection at a deadline.
func (k *Call) Deadline() (time.Time, bool) { return k.deadline, k.endless }

// Begin returns the context for a command that the caller sends itself, and then ends with
// [Call.End]; nil if a worker is to send it, see [Detach].
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
		// One whose own limit is the time-out has begun a moment ago.
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
		c.arm(k.limit)
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

// End ends a call with the error of its command, and returns what became of the command.
func (k *Call) End(err error) (State, error) {
	c := k.calls
	c.mu.Lock()
	k.prev.next, k.next.prev = k.next, k.prev
	k.prev, k.next = nil, nil
	c.count--
	c.mu.Unlock()
	sent, left := k.sent, k.ended.Load()
	// Of a dial that this call has begun, or another one.
	dials := err != nil && k.phase.Load() == dialing || errors.Is(err, context.Canceled)
	k.ctx, k.closing = nil, nil
	if !left && k.phase.Load() == sending { // what a dial derives from a context may outlast it
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
		return Abandoned, ErrNoAnswer // and not that a context ended, which was not the caller's
	}
	return state, err
}

// arm has the calls under way looked after, at the given time at the latest unless that is zero.
// c.mu must be held.
func (c *Calls) arm(latest time.Time) {
	// Very many that are slow are looked after less often: a server hangs.
	pause := tick + time.Duration(c.count)*time.Microsecond
	if !latest.IsZero() {
		pause = min(pause, max(0, time.Until(latest)))
	}
	if c.timer == nil {
		c.timer = time.AfterFunc(pause, c.sweep)
	} else {
		c.timer.Reset(pause)
	}
}

// sweep ends the calls whose callers should come back: when their time is over, or a moment after
// their context has ended or their client closes.
func (c *Calls) sweep() {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	var next time.Time // when the first of them ends
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
	if c.armed = c.count > 0; c.armed {
		c.arm(next)
	}
}

// over reports whether something other than its time has ended the budget of the caller.
func (k *Call) over() bool {
	select {
	case <-k.closing:
		return true
	default:
		return k.ctx.Err() != nil
	}
}

// heard notes whether a command that was sent at the given time got an answer.
func (c *Calls) heard(sent time.Time, err error) {
	if StateOf(err) == Unconfirmed {
		c.answered.Store(int64(-2 * proven))
	} else {
		c.answered.Store(int64(sent.Sub(c.began)))
	}
}

// StateOf returns what became of a command with that error.
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

// timedOut reports whether a command got no answer before a deadline: its context's, or rueidis's.
func timedOut(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)
}

// Detach has a worker send a command, and waits for its outcome. If b ends first it returns at
// once, with [Detached], and late gets the outcome when it is known; else late is not called.
func Detach[T any](
	c *Calls,
	b *wait.Budget,
	command func(context.Context) (T, error),
	late func(T, error),
) (value T, _ State, err error) {
	type outcome struct {
		value T
		err   error
	}
	outcomes, answer := make(chan outcome, 1), make(chan struct{})
	var decided atomic.Bool // by the first of the two: the answer, or the caller's leaving
	started := c.group.Go(func() {
		sent := time.Now()
		value, err := command(context.Background())
		for errors.Is(err, context.Canceled) { // a dial that a caller has begun, and ended at once
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
	if !started { // the client is closed, and nothing may outlive it
		value, err = command(context.Background())
		return value, StateOf(err), err
	}
	if !b.Wait(answer) && decided.CompareAndSwap(false, true) {
		return value, Detached, ErrNoAnswer
	}
	o := <-outcomes
	return o.value, StateOf(o.err), o.err
}

// Unexplained returns the error of a command that has no deadline, without that of another command
// that its connection ended with.
func Unexplained(err error) error {
	if StateOf(err) == Unconfirmed && errors.Is(err, context.DeadlineExceeded) {
		return ErrNoAnswer
	}
	return err
}

// Do sends a command from the caller's goroutine, or as [Detach] does.
func Do[T any](
	c *Calls,
	b *wait.Budget,
	command func(context.Context) (T, error),
	late func(T, error),
) (T, State, error) {
	if call := c.Begin(b); call != nil {
		value, err := command(call)
		if state, err := call.End(err); state != NotSent {
			return value, state, err
		}
	}
	return Detach(c, b, command, late)
}
