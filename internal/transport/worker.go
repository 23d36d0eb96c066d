package transport

import (
	"context"
	"sync"
	"sync/atomic"

	"holdfast/internal/wait"
)

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
		first = false
		if !b.Wait(places) {
			return *new(T), Refused, ErrNotSent
		}
	}
	outcome := workerCommand[T]{withoutCancel: withoutCancel{calls: c}, values: b.Ctx}
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
		defer c.freePlace(kind)
		defer outcome.end()
		outcome.value, outcome.err = dialed(c.gate(kind), first, &outcome.withoutCancel,
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
func work[S, T any](c *Calls, kind Kind, first bool, ctx *workerCommand[T], s S,
	command func(S, context.Context) (T, error),
) (value T, err error) {
	defer c.freePlace(kind)
	defer ctx.end()
	send := func() (T, error) { return command(s, ctx) }
	if kind == Apart { // it says nothing about the connections that callers share
		return dialed(c.gate(kind), first, &ctx.withoutCancel,
			func() (T, error) { return retryDial(&ctx.withoutCancel, send) })
	}
	c.workers.Add(1)
	defer c.workers.Add(-1)
	c.mu.Lock()
	c.awaitIdleCommand()
	c.mu.Unlock()
	return resend(&ctx.withoutCancel, kind, first, &ctx.decided, send)
}

// workerCommand is the outcome of a command that a worker sends, and the context that it is sent
// with.
type workerCommand[T any] struct {
	withoutCancel
	decided atomic.Bool // set by the reply or by the caller that leaves, whichever is first
	value   T
	err     error

	thrown *thrown // how foreign code ended the command; nil if it did not

	mu     sync.Mutex
	values context.Context // the caller's; nil once the command has ended; guarded by mu
}

// Value returns what the caller's context has, for hooks around rueidis; nil once the command has
// ended. A hook may keep w, and must not keep the caller's context by that.
func (w *workerCommand[T]) Value(key any) any {
	w.mu.Lock()
	values := w.values
	w.mu.Unlock()
	if values == nil {
		return nil
	}
	return values.Value(key)
}

// end is called once, when the command has ended. It forgets the caller's context.
func (w *workerCommand[T]) end() {
	w.withoutCancel.end()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.values = nil
}
