package transport

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"holdfast/internal/wait"
)

// withoutCancel is a context that never ends. It counts the dial of its command, if there is one;
// see the phases in phase.go.
type withoutCancel struct {
	calls    *Calls
	start    atomic.Uint32 // the first phase after phaseBegun; phaseSending once it has ended
	progress atomic.Uint32 // the latest phase, without phaseDialing
}

// These implement [context.Context].

func (p *withoutCancel) Value(any) any { return nil }

func (p *withoutCancel) Err() error {
	p.start.CompareAndSwap(phaseBegun, phaseSending)
	p.progress.CompareAndSwap(phaseBegun, phaseSending)
	return nil
}

func (p *withoutCancel) Deadline() (none time.Time, ok bool) {
	p.progress.CompareAndSwap(phaseSending, phaseSent)
	return none, false
}

func (p *withoutCancel) Done() <-chan struct{} {
	if p.start.CompareAndSwap(phaseBegun, phaseDialing) {
		p.calls.dials.Add(1)
	}
	p.progress.CompareAndSwap(phaseSending, phaseSent)
	return nil
}

// end is called when the command has ended. Nothing is counted from then on.
func (p *withoutCancel) end() {
	if p.start.Swap(phaseSending) == phaseDialing {
		p.calls.dials.Add(-1)
		// Perhaps it was: rueidis dials anew without an error if it noticed the loss before.
		p.calls.reportLost()
	}
}

// reset is called when the command has ended, and is about to be tried again.
func (p *withoutCancel) reset() {
	p.end()
	p.start.Store(phaseBegun)
	p.progress.Store(phaseBegun)
}

// explain returns the error of a command, as a temporary one if there was no connection to send it
// on. A full server, for example, closes each new connection before it greets.
func (p *withoutCancel) explain(err error) error {
	if p.progress.Load() == phaseSending && connectionLost(err) {
		return unreached(err)
	}
	return err
}

// retryDial runs a command with p, and again while it fails because a caller began its dial and
// left.
func retryDial[T any](p *withoutCancel, command func() (T, error)) (value T, err error) {
	defer func() { err = p.explain(err) }()
	value, err = command()
	for tries := 1; errors.Is(err, context.Canceled) && tries < 10; tries++ {
		time.Sleep(time.Millisecond << tries)
		p.reset()
		value, err = command()
	}
	return value, err
}

// Undo runs a command that removes what an earlier one has left, with a context that never ends.
// While it dials, callers do not send.
func Undo[T any](c *Calls, command func(context.Context) (T, error)) (T, error) {
	if places := c.places[undo]; places != nil {
		<-places
		defer c.freePlace(undo)
	}
	ctx := withoutCancel{calls: c}
	defer ctx.end()
	first, err := c.enter(undo, wait.NewBudget(context.Background(), nil, 2*longestOutage))
	if err != nil {
		return *new(T), err
	}
	return dialed(c.gate(undo), first, &ctx, func() (T, error) {
		return retryDial(&ctx, func() (T, error) { return command(&ctx) })
	})
}

// DoWithoutCancel is like [Undo], without a limit, for a command that may be sent again if its
// connection was lost, if its kind allows it.
func DoWithoutCancel[T any](
	c *Calls, kind Kind, command func(context.Context) (T, error),
) (T, error) {
	first, err := c.enter(kind, nil)
	if err != nil {
		return *new(T), err
	}
	ctx := c.contexts.Get().(*withoutCancel)
	value, unused, err := sendUnlimited(ctx, kind, first, command)
	if unused {
		ctx.start.Store(phaseBegun)
		ctx.progress.Store(phaseBegun)
		c.contexts.Put(ctx)
	}
	return value, Unexplained(err)
}

// sendUnlimited sends the command. unused says that nobody has the context any more: there was a
// reply, and no dial that may have derived other contexts from it.
func sendUnlimited[T any](
	ctx *withoutCancel, kind Kind, first bool, command func(context.Context) (T, error),
) (value T, unused bool, err error) {
	defer ctx.end()
	value, err = resend(ctx, kind, first, nil, func() (T, error) { return command(ctx) })
	return value, err == nil && ctx.start.Load() == phaseSending, err
}
