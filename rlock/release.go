package rlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"holdfast/lua"
	"holdfast/watchdog"
)

// Release gives back one level.
func (g *holding) Release(level *Hold) error { return g.giveBack([]*Hold{level}) }

// releaseWhole gives back all levels that are not being released already.
func (g *holding) releaseWhole() error {
	var leaving []*Hold
	g.mu.Lock()
	for _, level := range g.levels {
		if level.leave() {
			leaving = append(leaving, level)
		}
	}
	g.mu.Unlock()
	if len(leaving) == 0 {
		return nil
	}
	return g.giveBack(leaving)
}

// giveBack releases levels that nobody else releases. Whatever it returns, they have ended.
func (g *holding) giveBack(levels []*Hold) error {
	now := time.Now()
	p := g.client.resolve(now)
	defer p.stop()
	claimed := g.seat.tryClaim()
	if !claimed {
		claimed = g.seat.claim(p)
		now = time.Now()
	}
	if claimed {
		defer g.seat.pass()
	}
	if g.told {
		g.client.lines.leave(g.owner)
		defer g.client.lines.left(g.owner)
	}
	left, err := g.depart(levels, now)
	if err == nil && left == 0 {
		defer g.undoAdrift() // not before: a release that finds nothing held says that it was lost
	}
	switch {
	case err != nil:
		return err
	case claimed:
		return g.send(p, left, false)
	default:
		return g.noTurn(left)
	}
}

// noTurn is the end of a release that another call of the same owner keeps from being sent.
func (g *holding) noTurn(left int) error {
	if left == 0 {
		g.client.janitor.add(g.leftover())
	}
	return fmt.Errorf("%w: another call of the same owner is still waiting for Redis", ErrOutcomeUnknown)
}

// depart ends levels in this process, and returns how many are left, which Redis is to be told. With an error there is
// nothing to be told: the lock was lost when the caller looked at the clock.
func (g *holding) depart(levels []*Hold, now time.Time) (left int, err error) {
	err = g.lostError()
	if err == nil && !now.Before(g.lease.Deadline()) {
		err = &LostError{Lock: g.lock.name, Reason: watchdog.ErrExpired}
		g.lost(watchdog.ErrExpired)
	}
	if err != nil {
		for _, level := range slices.Backward(levels) {
			level.end(err) // whoever has ended the holding may not have come to these yet
		}
	}
	if left = g.remove(levels); left == 0 {
		g.forget()
		if err != nil {
			g.client.losses.Remove(g.at(), g)
		}
	}
	if errors.Is(err, watchdog.ErrExpired) {
		// Our margin is over, not the lease in Redis: with a lease of a day others would wait for another 14 minutes.
		l := g.leftover()
		l.until = time.Now().Add(max(time.Until(l.until), g.client.options.CommandTimeout))
		g.client.janitor.add(l)
	}
	return left, err
}

// send tells Redis the count that is left. It has the seat's turn. With doubt an earlier command may have been executed.
func (g *holding) send(p *patience, left int, doubt bool) error {
	var (
		c     = g.client
		delay backoff
		ends  = left == 0 && g.lock.side == shared
	)
	for heirs := left == 0 && g.lock.kind.passes(); ; heirs = false { // who had a release in doubt is told to look
		reply, gone, err := g.releaseOnce(p, left, heirs)
		switch {
		case gone:
			if ends {
				g.seat.loosen(g.owner)
			}
			return fmt.Errorf("%w: no answer to the release within %v", ErrOutcomeUnknown, c.options.CommandTimeout)
		case err == nil && (reply.Held || g.wasReleased(left, doubt)):
			c.refused(g.lock, reply.Refusal)
			if reply.Held && left == 0 && !reply.Reading {
				g.lostReads()
			}
			return nil
		case err == nil:
			return g.notHeld()
		case c.hopeless(err):
			return err
		}
		if lua.ClassOf(err) == lua.Unknown {
			doubt = true
			if ends {
				g.seat.loosen(g.owner)
			}
		}
		if !p.sleep(delay.next(), nil) {
			g.cleanUp(left)
			return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
		}
	}
}

// cleanUp has what a release may have left in Redis released in the background.
func (g *holding) cleanUp(left int) {
	if left == 0 {
		g.client.janitor.add(g.leftover())
	}
}

// releaseOnce sends the release once, with an heir if it may have one. With gone = true patience ended before the answer
// came, which is looked after then.
func (g *holding) releaseOnce(p *patience, left int, heirs bool) (reply lua.Released, gone bool, err error) {
	var (
		c  = g.client
		to = offer{journey: g.journey}
	)
	// When the client closes they are being sent home. Who is counted keeps it from having closed before what becomes of the
	// heir is seen to.
	if heirs && !c.closes() && c.tasks.count(true) {
		defer c.tasks.leave()
		to = c.lines.offer(g.lock.line, g.journey)
	}
	sent := time.Now()
	if to.spot == nil { // what becomes of an heir has to be heard of
		if direct, ok := c.flights.board(p, sent); ok {
			reply, err = g.lock.kind.release(direct, c.redis, g.owner, left, to.heir())
			if c.flights.landDirect(sent, err) {
				err = errNoAnswer // and not that a context ended, which was not the caller's
			}
			return reply, false, err
		}
	}
	return g.releaseInBackground(p, left, to)
}

// releaseInBackground sends the release from a goroutine of its own, so that the caller can leave at any time.
func (g *holding) releaseInBackground(p *patience, left int, to offer) (reply lua.Released, gone bool, err error) {
	sent := time.Now()
	return await(g.client, p,
		func() (lua.Released, error) {
			reply, err := g.lock.kind.release(context.Background(), g.client.redis, g.owner, left, to.heir())
			g.settle(to, sent, reply, err)
			return reply, err
		},
		func(_ lua.Released, err error) {
			if err != nil {
				g.cleanUp(left)
			} else if left == 0 && g.lock.side == shared {
				g.seat.tighten(g.owner)
			}
		})
}

// settle notes what became of a release for its heir.
func (g *holding) settle(to offer, sent time.Time, reply lua.Released, err error) {
	if to.settle(sent, reply, err) {
		h := to.spot.heir
		g.client.janitor.add(leftover{lock: g.lock, bid: bid{owner: h.owner, gift: h.lease, enlists: true, turns: to.after(sent, reply).turns},
			until: time.Now().Add(max(h.lease, placeKept))})
	}
}

// wasReleased tells that an answer "not held" is because an earlier attempt, whose answer did not come, was the release:
// our lease lasts still. One that was to leave levels behind takes nothing away.
func (g *holding) wasReleased(left int, doubt bool) bool {
	return left == 0 && doubt && time.Now().Before(g.lease.Deadline())
}

// notHeld is the end of a release of what Redis says is not held.
func (g *holding) notHeld() error {
	g.lost(watchdog.ErrGone)
	if err := g.lostError(); err != nil {
		return err
	}
	// The last level has ended as released, and nobody but its caller would hear of it.
	lost := &LostError{Lock: g.lock.name, Reason: g.goneReason()}
	g.report(lost)
	return lost
}

// remove ends levels as released, and returns how many are left.
func (g *holding) remove(levels []*Hold) int {
	g.mu.Lock()
	if len(g.levels) == 1 && len(levels) == 1 && g.levels[0] == levels[0] { // nearly always
		g.levels = g.levels[:0]
		g.mu.Unlock()
		levels[0].end(ErrReleased)
		return 0
	}
	g.levels = slices.DeleteFunc(g.levels, func(h *Hold) bool { return slices.Contains(levels, h) })
	left := len(g.levels)
	renew := slices.ContainsFunc(g.levels, func(h *Hold) bool { return h.renew })
	g.mu.Unlock()
	for _, level := range slices.Backward(levels) {
		level.end(ErrReleased)
	}
	if left > 0 {
		g.client.watchdog.SetRenew(&g.lease, renew)
	}
	return left
}

// lostReads is told that nothing of the owner is left in Redis. Those who wrote may believe that they still read.
func (g *holding) lostReads() {
	if g.lock.side != exclusive {
		return
	}
	if reading := g.seat.held(shared); reading != nil {
		reading.lost(watchdog.ErrGone)
	}
}

// forget ends a holding without levels: the watchdog must not renew what is being released.
func (g *holding) forget() {
	g.client.watchdog.Remove(&g.lease)
	g.end(ErrReleased)
	g.seat.drop(g)
	if g.lock.outlived() {
		g.seat.settle()
	}
}

// undoAdrift has what is adrift undone, when the holding has ended.
func (g *holding) undoAdrift() {
	if g.adrift == nil {
		return
	}
	l := g.leftover()
	lasts := max(time.Until(l.until), g.adrift.lasts(g.lock, 0), g.client.options.WatchdogLease)
	l.bid, l.until, l.adrift = *g.adrift, time.Now().Add(lasts), true
	g.client.janitor.add(l)
}

// lostError is why the lock was lost; nil if it was not.
func (g *holding) lostError() error {
	if err := g.why(); errors.Is(err, ErrLost) {
		return err
	}
	return nil
}

// resolve is the patience of what must be done whatever becomes of the caller and the client: an exchange of at most
// Options.CommandTimeout.
func (c *Client) resolve(now time.Time) *patience {
	end := now.Add(c.options.CommandTimeout)
	return &patience{ctx: context.Background(), until: end, end: end}
}

// refused reports, once per client, that a release was not announced.
func (c *Client) refused(l *Lock, refusal string) {
	if refusal != "" && c.publishRefused.CompareAndSwap(false, true) {
		c.options.Logger.Warn("holdfast: a lock was released, but Redis refuses to announce it; those who wait notice when its lease would have ended, or within 5 s: allow the channel in the ACL",
			"lock", l.name, "channel", l.kind.call("").channel, "refusal", refusal)
	}
}
