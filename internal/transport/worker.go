package transport

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"holdfast/internal/rediserr"
	"holdfast/internal/wait"
)

// SendByWorker lets a worker call command with s, and waits for the outcome. If b ends first,
// SendByWorker returns [CallerLeft] at once, and calls late with the outcome later. Otherwise
// SendByWorker does not call late. If b ends before there is a place for the command, SendByWorker
// returns [ErrNotSent]. After the client has closed, SendByWorker sends the command itself, and
// returns when rueidis does. If a hook around rueidis panics or calls runtime.Goexit, so does
// SendByWorker, or the worker if its caller has left. The outcome is then [ErrThrown].
func SendByWorker[S, T any](c *Calls, kind Kind, b *wait.Budget, s S,
	command func(S, context.Context) (T, error), late func(S, T, error),
) (T, State, error) {
	gate, first := c.gates[kind], false
	if gate.on.Load() {
		var err error
		first, err = gate.enter(kind, b)
		if err != nil {
			return *new(T), NotExecuted, err
		}
	}
	if places := c.places[kind]; places != nil && !wait.Fired(places) {
		// Other commands dial meanwhile, because this command may wait for long.
		if first {
			gate.yield()
			first = false
		}
		if !b.Wait(places) {
			return *new(T), NotExecuted, ErrNotSent
		}
	}
	w := &worker[S, T]{s: s, command: command, late: late, decision: make(chan struct{})}
	w.calls, w.values, w.kind, w.first = c, b.Ctx, kind, first
	if !c.group.Go(w.run) { // the client is closed, so nothing may run in the background
		w.run()
	}
	if !b.Wait(w.decision) && w.decided.CompareAndSwap(false, true) {
		return *new(T), CallerLeft, ErrNoReply
	}
	<-w.decision
	if w.thrown != nil {
		w.thrown.raise()
	}
	if w.err == nil {
		return w.value, Executed, nil
	}
	return w.value, StateOf(w.err), w.err
}

// worker is a command that a worker sends, and its outcome.
type worker[S, T any] struct {
	delivery
	s       S
	command func(S, context.Context) (T, error)
	late    func(S, T, error)

	decision chan struct{} // closed once the outcome is in value and err
	value    T
	err      error
	thrown   *thrown // how foreign code ended the command; nil if it did not
}

// run sends the command, and frees its place.
func (w *worker[S, T]) run() {
	c, shared := w.calls, w.kind != Apart // Apart says nothing about the connections of callers
	returned := false
	value, err := *new(T), ErrThrown
	defer func() {
		if !returned {
			w.thrown = &thrown{recover()}
		}
		w.end()
		c.mu.Lock()
		w.values = nil
		if shared {
			c.workers--
		}
		c.mu.Unlock()
		if places := c.places[w.kind]; places != nil {
			places <- struct{}{}
		}
		if w.decided.CompareAndSwap(false, true) {
			w.value, w.err = value, err
			close(w.decision)
			return
		}
		w.late(w.s, value, err)
		if w.thrown != nil {
			w.thrown.raise()
		}
	}()
	if shared {
		c.mu.Lock()
		c.workers++
		if c.idleCommand != nil {
			c.awaitIdleCommand()
		}
		c.mu.Unlock()
	}
	value, err = send(&w.delivery,
		func(ctx context.Context) (T, error) { return w.command(w.s, ctx) })
	returned = true
}

// Undo runs a command that removes what an earlier command has left, with a context that never
// ends. While Undo dials, callers do not send commands.
func Undo[T any](c *Calls, command func(context.Context) (T, error)) (T, error) {
	if places := c.places[undo]; places != nil {
		<-places
		defer func() { places <- struct{}{} }()
	}
	first, err := c.gates[undo].enter(undo,
		wait.NewBudget(context.Background(), nil, 2*longestOutage))
	if err != nil {
		return *new(T), err
	}
	d := delivery{kind: undo, first: first}
	d.calls = c
	defer d.end()
	return send(&d, command)
}

// DoWithoutCancel is like [Undo], without a limit. If the kind allows that, DoWithoutCancel sends
// the command again after a lost connection.
func DoWithoutCancel[T any](
	c *Calls, kind Kind, command func(context.Context) (T, error),
) (value T, err error) {
	first, err := c.gates[kind].enter(kind, nil)
	if err != nil {
		return value, err
	}
	d := c.deliveries.Get().(*delivery)
	d.kind, d.first = kind, first
	err = ErrThrown
	defer func() {
		// After a reply without a dial, nobody has the context any more. A dial may have derived other
		// contexts from it.
		unused := err == nil && d.start.Load() == phaseSending
		d.end()
		if unused {
			d.start.Store(phaseBegun)
			d.progress.Store(phaseBegun)
			d.sends, d.canceled, d.before = 0, 0, nil
			c.deliveries.Put(d)
		}
	}()
	value, err = send(d, command)
	return value, err
}

// delivery is a command whose context never ends, and its outcome so far.
type delivery struct {
	commandContext
	kind    Kind
	first   bool        // this command dials during an outage
	decided atomic.Bool // set by the reply or by the caller that leaves, whichever is first

	began    time.Time // when the latest try began
	sends    int       // how often its connection was lost
	before   error     // of the latest lost connection
	canceled int       // how often a caller has ended the dial since then
}

// MostSends limits how often a command is sent if its connection is lost each time. A server or a
// proxy closes idle connections, and rueidis notices that only with the next command on each
// connection. By default rueidis has up to four connections.
const MostSends = 5

// send sends a command until [delivery.again] says that its outcome is known.
func send[T any](d *delivery, command func(context.Context) (T, error)) (value T, err error) {
	c := d.calls
	gate := c.gates[d.kind]
	defer func() {
		if d.first { // a hook around rueidis panics or ends the goroutine
			gate.yield()
		}
	}()
	for again := true; again; {
		d.began = time.Now()
		err = nil
		if c.ready != nil {
			err = c.ready(context.Background()) // its commands say nothing about this command
		}
		if err == nil {
			value, err = command(&d.commandContext)
		}
		if err == nil && !d.first && !gate.on.Load() { // as nearly always
			if d.kind != Apart {
				c.recordReply(nil, d.began, Executed)
			}
			return value, nil
		}
		again, err = d.again(err)
	}
	return value, err
}

// again records the outcome of a try. It reports whether to send the command again. Otherwise it
// returns the error that says what became of the command.
func (d *delivery) again(err error) (bool, error) {
	c := d.calls
	if errors.Is(err, context.Canceled) && d.canceled < 9 { // a caller began its dial, and left
		d.canceled++
		time.Sleep(time.Millisecond << d.canceled)
		d.reset()
		return true, nil
	}
	unsent := err != nil && d.progress.Load() == phaseSending // there was no connection
	if unsent && connectionLost(err) {
		// The error is temporary. For example, a full server closes each new connection before it greets.
		err = unreached(err)
	}
	if c.ready == nil {
		reached := !unsent || rediserr.ClassOf(err) != rediserr.ClassTemporary
		c.gates[d.kind].leave(d.first, reached, d.began, err)
	}
	d.first = false
	state := StateOf(err)
	if unsent {
		state = NotSent
	}
	if d.kind != Apart {
		c.recordReply(nil, d.began, state)
	}
	if Lost(err) && d.kind.resendable() && d.sends < MostSends-1 && !d.decided.Load() {
		d.sends, d.canceled, d.before = d.sends+1, 0, err
		d.reset()
		return true, nil
	}
	return false, Unexplained(Resent(d.before, err))
}

// reset prepares a command that has ended for another try.
func (d *delivery) reset() {
	d.end()
	d.start.Store(phaseBegun)
	d.progress.Store(phaseBegun)
}

// Resent returns the error of a command that was sent again. before is the error of the first time,
// when the server may have executed the command.
func Resent(before, err error) error {
	if before == nil || err == nil {
		return err
	}
	return fmt.Errorf("%w; sent again: %w", before, err)
}

// ErrThrown is the error of a command that a hook around rueidis ended by a panic or by
// runtime.Goexit. Redis may have executed it.
var ErrThrown = errors.New("a hook of the Redis client panicked or ended the goroutine")

// thrown is how foreign code ended a command that a worker sent. The panic or Goexit continues in
// the caller, who waits for the outcome. In a goroutine of ours, a panic would end the process, and
// Goexit would go unnoticed.
type thrown struct{ panicked any } // nil for Goexit

// raise panics or calls Goexit in the calling goroutine.
func (t *thrown) raise() {
	if t.panicked != nil {
		panic(t.panicked)
	}
	runtime.Goexit()
}
