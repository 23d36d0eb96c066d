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
	claims := []lua.Claim{g.lock.kind.claim(g.owner)}
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
