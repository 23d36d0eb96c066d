package rlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/lua"
	"holdfast/watchdog"
)

// Extend makes Redis keep the lock for lease from now at least.
func (g *holding) Extend(ctx context.Context, lease time.Duration) error {
	if lease == Watchdog {
		lease = g.client.options.WatchdogLease
	}
	lease, err := wholeLease(lease)
	if err != nil {
		return err
	}
	c := g.client
	if !c.tasks.enter() {
		return ErrClosed
	}
	defer c.tasks.leave()
	a := attempt{client: c, lock: g.lock, ctx: ctx, patience: c.patience(ctx, c.options.CommandTimeout),
		bid: bid{lease: lease, waits: true}, failure: errNoAnswer}
	defer a.patience.stop()
	if reason := a.patience.reason(); reason != nil { // and nothing was sent
		if errors.Is(reason, ErrLost) { // another hold, to which the context belongs: not this one
			return fmt.Errorf("%w: %s", ctx.Err(), reason.Error())
		}
		return reason
	}
	if !g.seat.claim(a.patience) {
		return a.ended()
	}
	defer g.seat.pass()
	if g.depth() == 0 {
		return ofEnded(g.conclude())
	}
	// A renewal, and not a nested lock without a level: that writes, and a server without memory refuses it.
	claims := []lua.Renewal{g.lock.kind.claim(g.owner)}
	deadline, err := a.lengthen(g, func() (bool, error) {
		held, err := c.prolong(g.lock.side, lease, claims)
		return err == nil && held[0], err
	})
	if err != nil {
		return ofEnded(err)
	}
	g.extend(deadline)
	// The answer may have come too late: what is lost stays lost, also before anybody noticed.
	if !time.Now().Before(g.Deadline()) {
		g.lost(watchdog.ErrExpired)
	}
	if err := g.conclude(); err != nil {
		return ofEnded(err)
	}
	return nil
}

// reenter adds a level to what the owner holds.
func (a *attempt) reenter(h *holding) (*Hold, error) {
	levels := h.depth() + 1
	deadline, err := a.lengthen(h, func() (bool, error) {
		return a.lock.kind.reenter(a.client.redis, h.owner, levels, a.bid.lease)
	})
	if err != nil {
		return nil, err
	}
	return h.push(a.ctx, deadline, a.renew)
}

// lengthen makes Redis keep what the owner holds for as long as the attempt wants it, by a command that tells whether it is
// held, and returns until when that can be trusted.
func (a *attempt) lengthen(h *holding, command func() (bool, error)) (deadline time.Time, err error) {
	c, lease := a.client, a.bid.lease
	var delay backoff
	// A count too high does no harm, because the last release ignores it. A lease that nobody wants any more does.
	settle := func(held bool, err error) {
		if (held || err != nil) && h.lostError() != nil {
			c.janitor.add(h.leftover())
		}
	}
	for {
		h.mayLast(lease)
		sent := time.Now()
		held, left, err := await(c, a.patience, command, settle)
		if left {
			a.failure = errNoAnswer
			return time.Time{}, a.ended()
		}
		settle(held, err)
		switch {
		case err == nil && !held:
			h.lost(watchdog.ErrGone)
			return time.Time{}, h.conclude()
		case err == nil:
			return watchdog.Deadline(sent, lease), nil
		}
		a.failure = err
		if c.hopeless(err) || !a.bid.waits || !a.patience.sleep(delay.next(), nil) {
			return time.Time{}, a.unavailable()
		}
	}
}
