package rlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/internal/transport"
	"holdfast/lua"
	"holdfast/watchdog"
)

// Extend implements [Hold.Extend].
func (a *acquisition) Extend(ctx context.Context, asked Lease) error {
	c := a.client
	lease, err := c.wholeLease(asked)
	if err != nil {
		return err
	}
	at := attempt{client: c, lock: a.lock, request: request{lease: lease, waits: true}}
	at.budget.Begin(ctx, c.closing, c.options.CommandTimeout) // a nil context panics here
	if c.isClosing() || !c.group.Join() {
		return ErrClosed
	}
	defer c.group.Leave()
	if reason := at.budget.Err(); reason != nil { // nothing was sent
		if errors.Is(reason, ErrLost) { // the context belongs to another hold, which is lost
			return fmt.Errorf("%w: %s", ctx.Err(), withoutPrefix(context.Cause(ctx)))
		}
		return reason
	}
	if !a.session.Lock(&at.budget) {
		return at.budget.Because(errBusy)
	}
	defer a.session.Unlock()
	if a.depth() == 0 {
		return ofEnded(cmp.Or(a.conclude(), ErrReleased)) // the release may just have begun
	}
	deadline, err := at.extend(a, 0)
	if err != nil {
		return ofEnded(err)
	}
	return ofEnded(a.extended(deadline))
}

// extended moves the deadline, unless the reply came too late. A lost lock stays lost, even if
// nobody has noticed the loss yet. extended returns why the acquisition has ended, or nil if it
// lasts.
func (a *acquisition) extended(deadline time.Time) error {
	a.client.watchdog.Extend(&a.watched, deadline)
	if time.Until(a.Deadline()) <= 0 {
		a.lose(watchdog.ErrExpired)
	}
	return a.conclude()
}

// reenter adds a level to an acquisition.
func (at *attempt) reenter(a *acquisition) (*Hold, error) {
	if err := a.lock.reentry; err != nil {
		return nil, err
	}
	a.noTurns = true
	if at.renew && !a.MayRenew() {
		at.request.lease = shortestLease // a level must not exceed MaxHold
	}
	deadline, err := at.extend(a, a.depth()+1)
	if err != nil {
		return nil, err
	}
	hold, err := a.push(at.budget.Ctx, deadline, at.renew)
	if err == nil {
		if at.lock.atLeast > 0 {
			a.keepFor(at.lock.atLeast)
		}
		at.call.Reenters()
	}
	return hold, err
}

// extend makes Redis keep an acquisition for the lease of the attempt, and returns the new
// deadline. extend also sets the number of levels in Redis, unless levels is 0.
func (at *attempt) extend(a *acquisition, levels int) (deadline time.Time, err error) {
	c, lease, key := at.client, at.request.lease, a.lock.held(a.owner)
	command := func(ctx context.Context) (bool, error) {
		if levels > 0 {
			return lua.Reenter(ctx, c.redis, key, levels, lease)
		}
		// This is a renewal, because setting the count is a write, which a server without memory rejects.
		held, err := lua.Renew(ctx, c.redis, lease, []lua.Held{key})
		return err == nil && held[0], err
	}
	// A count that is too high does no harm, because the last release ignores the count. But an
	// unwanted lease does harm.
	cleanUp := func(held bool, err error) {
		if (held || err != nil) && a.lostError() != nil {
			c.cleaner.add(a.cleanup())
		}
	}
	for {
		a.MayLast(lease)
		at.call.asks()
		sent := time.Now()
		held, state, err := transport.Do(c.calls, transport.Keep, &at.budget, command, cleanUp)
		if state != transport.CallerLeft {
			cleanUp(held, err)
		}
		switch {
		case err == nil && !held:
			a.lose(watchdog.ErrGone)
			return time.Time{}, a.conclude()
		case err == nil:
			return watchdog.Deadline(sent, lease), nil
		}
		at.failure = err
		at.unknown = at.unknown || state > transport.NotExecuted
		left := state == transport.CallerLeft || state == transport.Abandoned && at.budget.Over()
		if left || c.transport.Permanent(err) || !at.request.waits ||
			!at.budget.Sleep(at.delay.Next(), nil, nil) {
			return time.Time{}, at.ended()
		}
	}
}
