package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/rueidis"

	"holdfast/internal/rediserr"
	"holdfast/internal/wait"
)

// State is the outcome of a command.
type State uint8

// The outcomes of a command. [StateOf] returns one after Refused if it may have been executed.
const (
	Executed    State = iota // the server executed it
	Refused                  // the server did not execute it
	Unconfirmed              // its connection was lost: it was executed, or never will be
	Abandoned                // nobody waits for its reply: it may be executed at any time
	Detached                 // its caller left: a callback gets the outcome
	NotSent                  // its caller would have had to dial first
)

// ErrNoReply is the error of a command whose caller left before the reply.
var ErrNoReply = &rediserr.Error{Class: rediserr.ClassUnknown,
	Message: "no reply from Redis in time",
	Advice:  "is the server up, is it busy, and is rueidis.ClientOption.TLSConfig right for it?"}

// ErrNotSent is the error of a command whose caller left before there was room to send it.
var ErrNotSent = &rediserr.Error{Class: rediserr.ClassTemporary,
	Message: "not sent: too many are under way"}

// NoReply returns [ErrNoReply], with the error of the try before, which says more, if there is one.
func NoReply(before error) error {
	if before == nil || errors.Is(before, ErrNoReply) {
		return ErrNoReply
	}
	return fmt.Errorf("%w; before that: %w", ErrNoReply, before)
}

// Calls sends the commands of a client. All methods are safe for concurrent use.
//
// A caller sends its command itself, with a [Call] as its context. That context ends when the
// budget of the caller ends or the command has taken its timeout. rueidis then returns at once and
// keeps the connection. That allocates nothing: calls are recycled, and they share one timer.
//
// Only two things could block a caller for longer: a dial, which rueidis shares between callers,
// and a connection with a full queue. The caller waits for a worker that sends the command, if
//   - the server is a cluster: the reply of one node says nothing about the others;
//   - no reply came within the last 100 ms, or the connection turns out to be lost;
//   - a command of a worker, [Calls.Aside] or [Patiently] dials: rueidis would let the caller
//     wait for that dial. Rarely it does so all the same: for a dial that began a moment later, or
//     by another command, as of the application or a RedLock, or that is not a net.Dialer's;
//   - very many commands are under way, and then each [Kind] of command has a limit of its own;
//   - a caller was blocked all the same within the last minute, or several left without a reply:
//     what they sent stays in rueidis's queue for as long as that connection gives no reply, while
//     others may work;
//   - the caller has little time left: such callers leave often, and a worker learns the outcome.
//
// Until two commands overlap, a worker also sends each command whose caller may leave before its
// timeout. If the caller sent it, rueidis would start to pipeline on that connection, for good,
// which slows down a process that sends one command at a time.
type Calls struct {
	group   *wait.Group
	timeout time.Duration
	began   time.Time

	replied  atomic.Int64 // when about the latest command with a reply was sent, in ns since began
	detached atomic.Int64 // until then workers send all commands, in ns since began
	dials    atomic.Int64 // the dials in progress by workers and Aside
	outage   outage       // not used on a cluster, where it would have to be one for each node
	pool     outage       // of connections of their own, for which a command may wait for long
	cluster  bool
	workers  atomic.Int64         // the commands that workers have under way on the shared connections
	recycled sync.Pool            // of *Call
	patients sync.Pool            // of *patient
	places   [kinds]chan struct{} // free places for commands of workers, by kind; nil without a limit
	timer    *time.Timer          // runs sweep
	closed   chan struct{}        // a closed channel

	mu         sync.Mutex
	underway   Call      // the head of a ring of calls, oldest first; guarded by mu
	count      int       // guarded by mu
	sweepAt    time.Time // when the timer fires; zero if it is not set; guarded by mu
	overlapped bool      // Begin has seen another command under way; guarded by mu
	abandoned  int       // calls that ended without a reply, since abandonedAt; guarded by mu
	// abandonedAt is when the first of them ended, at most workersOnly ago; guarded by mu.
	abandonedAt time.Time

	onLost func() // called when a command lost its connection; nil if nobody asks; constant

	aside chan struct{} // closed when the command of Aside has ended; guarded by mu; nil without one
}

const (
	// proven limits how long a reply shows that the connection is up.
	proven = 100 * time.Millisecond
	// minBudget is the time that a caller must have left to send a command itself.
	minBudget = 100 * time.Millisecond
	// mostUnderway is how many commands of callers and workers may be under way before callers stop to
	// send themselves. rueidis's queue has 1024 places, unless ClientOption.RingScaleEachConn says
	// otherwise. A caller that has begun to send must never find the queue full. To fit smaller ones
	// would cost twice the processor time beyond that number of commands: see docs/operations.md.
	mostUnderway = 448
	// These limit what workers have under way at a time, by kind: 992 commands with those of callers.
	// A worker keeps its place after its caller has left, for as long as rueidis waits for a reply.
	mostAcquiring, mostRenewing, mostKeeping, mostUndoing, mostApart = 240, 96, 144, 64, 384
	// workersOnly is the time after a blocked caller in which workers send all commands. So it is
	// after mostAbandoned callers of about as long have left without a reply.
	workersOnly, mostAbandoned = time.Minute, 32
	// Calls under way are checked every calmTick, and about every tick once a check has found one
	// slower than slow. Processes that wake up more often take the processor from Redis.
	tick, calmTick, slow = 2 * time.Millisecond, 200 * time.Millisecond, 20 * time.Millisecond
	// crowd is how many commands may be under way before rueidis is made to write several together.
	// With fewer, Redis would be idle while they gather.
	crowd = 16
	// grace is the extra time for a reply once a caller should return. A healthy server needs less.
	grace = 10 * time.Millisecond
)

// Kind says whose capacity a command uses. Acquisitions cannot use up that of commands for what is
// held: a lock must not be lost because others are hard to get. Nor because others are hard to
// release: while one of rueidis's connections gives no reply, workers keep their places for it.
type Kind uint8

// The kinds of commands.
const (
	Acquire Kind = iota // it acquires a lock, or inspects one; it may be sent again
	Renew               // the watchdog renews what is held; it may be sent again
	Keep                // it extends what is held; it may be sent again
	Release             // it releases what is held, with the capacity of Keep
	Apart               // it has a connection of its own, perhaps for long
	undo                // it removes what an earlier command has left
	kinds
)

// again reports whether a command whose connection was lost may be sent again at once. A release
// may not: the second reply could say that nothing was held, or that another waiter got the lock.
func (k Kind) again() bool { return k == Acquire || k == Renew || k == Keep }

// MostSends limits how often a command is sent because its connection is lost each time. A server
// or a proxy closes connections that were idle, and rueidis, which has up to four by default,
// notices that with the next command on each.
const MostSends = 5

// NewCalls returns the calls of a client whose tasks are in group. timeout bounds each command. On
// a cluster workers send all commands: a reply of one node says nothing about the others.
func NewCalls(group *wait.Group, timeout time.Duration, cluster bool) *Calls {
	c := &Calls{group: group, timeout: timeout, began: time.Now(), closed: make(chan struct{}),
		cluster: cluster}
	close(c.closed)
	c.outage.shared = true
	c.underway.prev, c.underway.next = &c.underway, &c.underway
	c.patients.New = func() any { return &patient{calls: c} }
	c.recycled.New = func() any { return &Call{calls: c, done: make(chan struct{})} }
	c.timer = time.AfterFunc(time.Hour, c.sweep)
	c.timer.Stop()
	c.heard(c.began, NotSent)
	if cluster { // a node that hangs must not hold up commands to others
		c.detached.Store(math.MaxInt64)
		return c
	}
	for kind, most := range map[Kind]int{
		Acquire: mostAcquiring, Renew: mostRenewing, Keep: mostKeeping, Apart: mostApart,
		undo: mostUndoing,
	} {
		c.places[kind] = make(chan struct{}, most)
		for range most {
			c.places[kind] <- struct{}{}
		}
	}
	c.places[Release] = c.places[Keep]
	return c
}

// OnLost sets what is called when a command loses its connection, or dials one, perhaps instead of
// one that was lost before. It must not block. Call OnLost before the first command.
func (c *Calls) OnLost(f func()) { c.onLost = f }

func (c *Calls) lost() {
	if c.onLost != nil {
		c.onLost()
	}
}

// Call is a command under way, and the context that it is sent with.
type Call struct {
	calls   *Calls
	budget  wait.Budget // a copy of the caller's; guarded by calls.mu
	valued  bool        // Value was called; guarded by calls.mu
	sent    time.Time
	limit   time.Time // when the call ends; guarded by calls.mu once it is under way
	endless bool      // only the timeout ends it

	deadline time.Time     // a copy of limit that rueidis may read at any time
	done     chan struct{} // closed when the call ends before the command
	ended    atomic.Bool
	crowded  atomic.Bool // it began as one of more than crowd; a dial may read it later
	phase    atomic.Uint32

	prev, next *Call // guarded by calls.mu
}

// The phases of a call and of a patient context.
const (
	begun   = iota // rueidis has not read the context yet
	dialing        // rueidis has no connection
	sending        // rueidis has one, which may have been lost, or could not be opened
	sent           // rueidis has sent the command, or is about to
)

// Err is not nil once the caller should return. rueidis calls it first if it has a connection. It
// calls Deadline and Done after that if the connection is up, and neither if it is not.
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
// and ends at once: other callers share it, and would fail when this one leaves. A worker dials.
func (k *Call) Done() <-chan struct{} {
	if k.phase.CompareAndSwap(begun, dialing) || k.phase.Load() == dialing {
		return k.calls.closed
	}
	k.phase.CompareAndSwap(sending, sent)
	if k.crowded.Load() {
		// rueidis may just have woken its writer. It would run next, and write one command. A new
		// goroutine takes that turn, so that callers that are ready to send run before the writer.
		go func() {}()
	}
	return k.done
}

// Value returns what the caller's context has until rueidis reads k: for hooks around its client,
// such as rueidisotel's. Later the caller may have returned. A hook may keep k, and ask again when
// the call has ended, so k is not recycled then: it would have the values of another caller.
func (k *Call) Value(key any) any {
	k.calls.mu.Lock()
	k.valued = true
	values := k.budget.Ctx
	k.calls.mu.Unlock()
	if values == nil || k.phase.Load() != begun {
		return nil
	}
	return values.Value(key)
}

// Deadline returns the timeout of a caller that nothing else ends: rueidis may read from the socket
// itself then, if no other command is under way, but it closes the connection at a deadline.
func (k *Call) Deadline() (time.Time, bool) {
	k.phase.CompareAndSwap(sending, sent)
	return k.deadline, k.endless
}

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
	c.awaitAside()
	c.overlapped = c.overlapped || c.count > 0 || c.workers.Load() > 0 || c.aside != nil
	// direct is read with mu held: an abandoned call makes it false before it leaves count.
	if c.count+int(c.workers.Load()) >= mostUnderway || !c.direct(now) || !c.overlapped && !endless {
		c.mu.Unlock()
		c.recycled.Put(k)
		return nil
	}
	k.budget, k.valued = *b, false
	k.sent, k.limit, k.deadline, k.endless = now, limit, limit, endless
	k.phase.Store(begun)
	c.count++
	k.crowded.Store(c.count > crowd)
	k.prev, k.next = c.underway.prev, &c.underway
	k.prev.next, k.next.prev = k, k
	if c.sweepAt.IsZero() || k.limit.Before(c.sweepAt) {
		c.setTimer(now, min(calmTick, k.limit.Sub(now)))
	}
	c.mu.Unlock()
	return k
}

// Aside runs a command that no caller waits for, one at a time. Until two commands of callers have
// overlapped it does so when none is under way, and those that come meanwhile wait for it for a
// moment: if it overlapped with one, rueidis would start to pipeline. It returns false, without
// running the command, if there is no such moment within about a second.
func (c *Calls) Aside(command func(context.Context)) bool {
	c.mu.Lock()
	for tries := 0; !c.overlapped && (c.count > 0 || c.workers.Load() > 0); tries++ {
		c.mu.Unlock()
		if tries == mostTries {
			return false
		}
		time.Sleep(time.Millisecond)
		c.mu.Lock()
	}
	done := make(chan struct{})
	c.aside = done
	c.mu.Unlock()
	ctx := patient{calls: c}
	defer func() { // even if a hook around rueidis panics
		ctx.end()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.aside = nil
		close(done)
	}()
	command(&ctx)
	return true
}

// mostTries is how often Aside looks for a moment without commands, a millisecond apart.
const mostTries = 1000

// awaitAside waits for the command of Aside, for no longer than a grace. c.mu must be held; it is
// unlocked meanwhile.
func (c *Calls) awaitAside() {
	aside := c.aside
	if aside == nil || c.overlapped {
		return
	}
	c.mu.Unlock()
	defer c.mu.Lock()
	limit := time.NewTimer(grace)
	defer limit.Stop()
	select {
	case <-aside:
	case <-limit.C:
	}
}

// direct reports whether callers may send commands themselves.
func (c *Calls) direct(now time.Time) bool {
	since := now.Sub(c.began)
	return since-time.Duration(c.replied.Load()) <= proven &&
		since >= time.Duration(c.detached.Load()) && c.dials.Load() == 0
}

// End ends a call with the error of its command, and returns the outcome.
func (k *Call) End(err error) (State, error) {
	c := k.calls
	sentAt, left, state, phase := k.sent, k.ended.Load(), StateOf(err), k.phase.Load()
	switch {
	case err != nil && phase == dialing, errors.Is(err, context.Canceled):
		state = NotSent // the dial was started by this call or by another one
	case phase == sending && lost(err):
		state = NotSent // there was no connection any more
	case state == Abandoned, state == Unconfirmed && left:
		state, err = Abandoned, ErrNoReply
	}
	c.heard(sentAt, state) // before another call may begin
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
	if !k.ended.Load() && !valued && (phase == sending || phase == sent) {
		c.recycled.Put(k)
	}
	if left && time.Since(sentAt)-c.timeout > c.timeout/4 {
		c.detached.Store(int64(time.Since(c.began) + workersOnly))
	}
	return state, err
}

// abandon notes that a call has ended without a reply. c.mu must be held.
func (c *Calls) abandon(now time.Time) {
	if now.Sub(c.abandonedAt) > workersOnly {
		c.abandoned, c.abandonedAt = 0, now
	}
	c.abandoned++
	if c.abandoned >= mostAbandoned {
		c.detached.Store(int64(now.Sub(c.began) + workersOnly))
	}
}

// sweep ends calls: at their limit, or a grace after it has found that their budget ended early.
func (c *Calls) sweep() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	pause := calmTick
	if now.Sub(c.underway.next.sent) > slow {
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
	if c.sweepAt = (time.Time{}); c.count > 0 {
		c.setTimer(now, pause)
	}
}

// setTimer makes sweep run a pause after now, which may be long ago. c.mu must be held.
func (c *Calls) setTimer(now time.Time, pause time.Duration) {
	c.sweepAt = now.Add(pause)
	c.timer.Reset(time.Until(c.sweepAt))
}

// heard records whether a command sent at the given time got a reply. It does not write after each
// reply, which would slow down all other processors that send.
func (c *Calls) heard(sent time.Time, outcome State) {
	if outcome == Unconfirmed {
		c.lost()
	}
	at := int64(math.MinInt64 / 2) // long before any reply
	if outcome == Executed || outcome == Refused {
		at = int64(sent.Sub(c.began))
	}
	if at < 0 || at > c.replied.Load()+int64(proven/10) {
		c.replied.Store(at)
	}
}

// StateOf returns the outcome of a command with the given error.
func StateOf(err error) State {
	switch {
	case err == nil:
		return Executed
	case rediserr.ClassOf(err) != rediserr.ClassUnknown:
		return Refused
	case errors.Is(Unexplained(err), ErrNoReply): // rueidis gave up, or the caller did
		return Abandoned
	}
	return Unconfirmed
}

// patient is a context that never ends, and counts the dial of its command, if there is one: see
// [Call.Done] and [Call.Err].
type patient struct {
	calls *Calls
	phase atomic.Uint32 // begun, dialing or sending, as it was first; sending once it has ended
	stage atomic.Uint32 // begun, sending or sent, as it was last
}

// These implement [context.Context].

func (p *patient) Value(any) any { return nil }

func (p *patient) Deadline() (none time.Time, ok bool) {
	p.stage.CompareAndSwap(sending, sent)
	return none, false
}

func (p *patient) Err() error {
	p.phase.CompareAndSwap(begun, sending)
	p.stage.CompareAndSwap(begun, sending)
	return nil
}

func (p *patient) Done() <-chan struct{} {
	if p.phase.CompareAndSwap(begun, dialing) {
		p.calls.dials.Add(1)
	}
	p.stage.CompareAndSwap(sending, sent)
	return nil
}

// end is called when the command has ended. Nothing is counted from then on.
func (p *patient) end() {
	if p.phase.Swap(sending) == dialing {
		p.calls.dials.Add(-1)
		p.calls.lost() // perhaps: rueidis dials anew without an error if it noticed the loss before
	}
}

// renew is called when the command has ended, and is about to be tried again.
func (p *patient) renew() {
	p.end()
	p.phase.Store(begun)
	p.stage.Store(begun)
}

// explain returns the error of a command, as a temporary one if there was no connection to send it
// on. A full server, for example, closes each new connection before it greets.
func (p *patient) explain(err error) error {
	if p.stage.Load() == sending && lost(err) {
		return unreached(err)
	}
	return err
}

// unreached returns the error of a command that was not sent, because the server closed the
// connection before that, or did not greet.
func unreached(err error) error {
	e := &rediserr.Error{Class: rediserr.ClassTemporary, Err: err,
		Message: "no connection: " + err.Error(),
		Advice: "the server or a proxy closed the connection before the command was sent; " +
			"raise maxclients if the server is full, or set rueidis.ClientOption.TLSConfig if it wants TLS"}
	var cause *rediserr.Error
	if errors.As(err, &cause) {
		e.Message = "no connection: " + cause.Message
	}
	switch {
	case cause != nil && errors.Is(err, rueidis.ErrClosing):
		e.Message, e.Advice = cause.Message, cause.Advice
	case errors.Is(err, os.ErrDeadlineExceeded):
		e.Advice = "the server accepts connections but does not reply; check if it is stopped or busy"
	}
	return e
}

// lost reports whether err says that a connection was lost, without a reply to the command.
func lost(err error) bool {
	return err != nil && rediserr.ClassOf(err) == rediserr.ClassUnknown &&
		(errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
			errors.Is(err, io.ErrClosedPipe) || errors.Is(err, net.ErrClosed) ||
			errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
			errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, rueidis.ErrClosing))
}

// persist runs a command with p, and again while it fails because a caller began its dial and left.
func persist[T any](p *patient, command func() (T, error)) (value T, err error) {
	defer func() { err = p.explain(err) }()
	value, err = command()
	for tries := 1; errors.Is(err, context.Canceled) && tries < 10; tries++ {
		time.Sleep(time.Millisecond << tries)
		p.renew()
		value, err = command()
	}
	return value, err
}

// Patiently runs a command with a context that never ends, which removes what an earlier one has
// left. While it dials, callers do not send.
func Patiently[T any](c *Calls, command func(context.Context) (T, error)) (T, error) {
	if places := c.places[undo]; places != nil {
		<-places
		defer c.leave(undo)
	}
	ctx := patient{calls: c}
	defer ctx.end()
	first, err := c.enter(undo, wait.NewBudget(context.Background(), nil, 2*longestOutage))
	if err != nil {
		return *new(T), err
	}
	return dialed(c.gate(undo), first, &ctx, func() (T, error) {
		return persist(&ctx, func() (T, error) { return command(&ctx) })
	})
}

// detached is the outcome of a command that a worker sends, and the context that it is sent with.
type detached[T any] struct {
	patient
	decided atomic.Bool // set by the reply or by the caller that leaves, whichever is first
	value   T
	err     error

	thrown *thrown // how foreign code ended the command; nil if it did not

	mu     sync.Mutex
	values context.Context // the caller's; nil once the command has ended; guarded by mu
}

// Value returns what the caller's context has, for hooks around rueidis; nil once the command has
// ended. A hook may keep d, and must not keep the caller's context by that.
func (d *detached[T]) Value(key any) any {
	d.mu.Lock()
	values := d.values
	d.mu.Unlock()
	if values == nil {
		return nil
	}
	return values.Value(key)
}

// end is called once, when the command has ended. It forgets the caller's context.
func (d *detached[T]) end() {
	d.patient.end()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.values = nil
}

// Detach has a worker call command with s, and waits for its outcome. If b ends first it returns
// [Detached] at once, and late is called with the outcome when it is known; else it is not called.
// If b ends before there is a place for the command, it is not sent: the error is [ErrNotSent].
// Once the client is closed it sends the command itself, and returns when rueidis does. If a hook
// around rueidis panics or calls runtime.Goexit, so does Detach, or the worker once its caller has
// left; the outcome is [ErrThrown].
func Detach[S, T any](c *Calls, kind Kind, b *wait.Budget, s S,
	command func(S, context.Context) (T, error), late func(S, T, error),
) (T, State, error) {
	first, err := c.enter(kind, b)
	if err != nil {
		return *new(T), Refused, err
	}
	if places := c.places[kind]; places != nil && !wait.Fired(places) {
		// Others dial meanwhile: this command may wait for long.
		c.gate(kind).yield(first)
		if first = false; !b.Wait(places) {
			return *new(T), Refused, ErrNotSent
		}
	}
	outcome := detached[T]{patient: patient{calls: c}, values: b.Ctx}
	decided := make(chan struct{})
	started := c.group.Go(func() {
		returned := false
		value, err := *new(T), ErrThrown
		defer func() {
			if !returned {
				outcome.thrown = &thrown{recover()}
			}
			err = Unexplained(err)
			if outcome.decided.CompareAndSwap(false, true) {
				outcome.value, outcome.err = value, err
				close(decided)
				return
			}
			late(s, value, err)
			outcome.thrown.raise()
		}()
		value, err = work(c, kind, first, &outcome, s, command)
		returned = true
	})
	switch {
	case !started: // the client is closed: nothing may run in the background
		defer c.leave(kind)
		defer outcome.end()
		outcome.value, outcome.err = dialed(c.gate(kind), first, &outcome.patient,
			func() (T, error) { return command(s, &outcome) })
	case b.Wait(decided):
	case outcome.decided.CompareAndSwap(false, true):
		return *new(T), Detached, ErrNoReply
	default:
		<-decided
	}
	outcome.thrown.raise()
	return outcome.value, StateOf(outcome.err), outcome.err
}

// work sends a command from a worker, and gives up its place.
func work[S, T any](c *Calls, kind Kind, first bool, ctx *detached[T], s S,
	command func(S, context.Context) (T, error),
) (value T, err error) {
	defer c.leave(kind)
	defer ctx.end()
	send := func() (T, error) { return command(s, ctx) }
	if kind == Apart { // it says nothing about the connections that callers share
		return dialed(c.gate(kind), first, &ctx.patient,
			func() (T, error) { return persist(&ctx.patient, send) })
	}
	c.workers.Add(1)
	defer c.workers.Add(-1)
	c.mu.Lock()
	c.awaitAside()
	c.mu.Unlock()
	return resend(&ctx.patient, kind, first, &ctx.decided, send)
}

// resend sends a command, and again if it may be and its connection was lost, unless the caller has
// left; a nil left means that it cannot. first says that it is the one that may dial.
func resend[T any](ctx *patient, kind Kind, first bool, left *atomic.Bool,
	send func() (T, error),
) (T, error) {
	var before error
	for sends := 1; ; sends++ {
		began := time.Now()
		value, err := dialed(ctx.calls.gate(kind), first, ctx,
			func() (T, error) { return persist(ctx, send) })
		first = false
		state := StateOf(err)
		if ctx.stage.Load() == sending { // there was no connection
			state = NotSent
		}
		ctx.calls.heard(began, state)
		if !Lost(err) || !kind.again() || sends == MostSends || left != nil && left.Load() {
			return value, Resent(before, err)
		}
		before = err
		ctx.renew()
	}
}

// Resent returns the error of a command that was sent again: the first time, when before is the
// error, it may have been executed.
func Resent(before, err error) error {
	if before == nil || err == nil {
		return err
	}
	return fmt.Errorf("%w; sent again: %w", before, err)
}

// Lost reports whether a command may have been executed, but its connection was lost.
func Lost(err error) bool { return lost(err) && StateOf(err) == Unconfirmed }

// leave gives up the place of a command.
func (c *Calls) leave(kind Kind) {
	if places := c.places[kind]; places != nil {
		places <- struct{}{}
	}
}

// Unexplained replaces errors about deadlines: of other commands on the connection, or rueidis's.
func Unexplained(err error) error {
	if (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)) &&
		rediserr.ClassOf(err) == rediserr.ClassUnknown {
		return ErrNoReply
	}
	return err
}

// Again is like [Patiently], without a limit, for a command that may be sent again if its
// connection was lost, if its kind allows it.
func Again[T any](c *Calls, kind Kind, command func(context.Context) (T, error)) (T, error) {
	first, err := c.enter(kind, nil)
	if err != nil {
		return *new(T), err
	}
	ctx := c.patients.Get().(*patient)
	value, unused, err := again(ctx, kind, first, command)
	if unused {
		ctx.phase.Store(begun)
		ctx.stage.Store(begun)
		c.patients.Put(ctx)
	}
	return value, Unexplained(err)
}

// again sends the command. unused says that nobody has the context any more: there was a reply, and
// no dial that may have derived other contexts from it.
func again[T any](ctx *patient, kind Kind, first bool, command func(context.Context) (T, error),
) (value T, unused bool, err error) {
	defer ctx.end()
	value, err = resend(ctx, kind, first, nil, func() (T, error) { return command(ctx) })
	return value, err == nil && ctx.phase.Load() == sending, err
}

// Quiet reports whether no reply has come for long: a proxy may have closed the connections.
func (c *Calls) Quiet() bool {
	return time.Since(c.began)-time.Duration(c.replied.Load()) > 10*proven
}

// Do sends a command from the caller's goroutine if that cannot block it, or else as [Detach] does.
func Do[T any](c *Calls, kind Kind, b *wait.Budget,
	command func(context.Context) (T, error), late func(T, error),
) (T, State, error) {
	var before error
	if call := c.Begin(b, time.Now()); call != nil {
		value, state, err := direct(call, command)
		if kind.again() && Lost(err) {
			before = err
		} else if state != NotSent {
			return value, state, err
		}
	}
	value, state, err := Detach(c, kind, b, struct{}{},
		func(_ struct{}, ctx context.Context) (T, error) { return command(ctx) },
		func(_ struct{}, value T, err error) { late(value, Resent(before, err)) })
	if err = Resent(before, err); state == Refused {
		state = StateOf(err)
	}
	return value, state, err
}
