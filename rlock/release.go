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

// release gives back one level.
func (g *holding) release(level *Hold) error {
	g.mu.Lock()
	if level.leaving {
		g.mu.Unlock()
		return fmt.Errorf("%w: this hold was released before", ErrNotHeld)
	}
	level.leaving = true
	g.mu.Unlock()
	return g.giveBack([]*Hold{level})
}

// releaseWhole gives back all levels that are not being released already.
func (g *holding) releaseWhole() error {
	var leaving []*Hold
	g.mu.Lock()
	for _, level := range g.levels {
		if !level.leaving {
			level.leaving = true
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
	p := g.client.resolve()
	defer p.stop()
	claimed := g.seat.claim(p)
	if claimed {
		defer g.seat.pass()
	}
	err := g.lostError()
	if err == nil && !time.Now().Before(g.lease.Deadline()) {
		err = &LostError{Lock: g.lock.name, Reason: watchdog.ErrExpired}
		g.lost(watchdog.ErrExpired)
	}
	left := g.remove(levels)
	if left == 0 {
		g.forget()
	}
	switch {
	case errors.Is(err, watchdog.ErrExpired):
		// Our margin is over, not the lease in Redis: with a lease of a day others would wait for another 14 minutes.
		l := g.leftover()
		l.until = time.Now().Add(max(time.Until(l.until), g.client.options.CommandTimeout))
		g.client.janitor.add(l)
		return err
	case err != nil:
		return err
	case claimed:
		return g.send(p, left)
	case left == 0:
		g.client.janitor.add(g.leftover())
	}
	return fmt.Errorf("%w: another call of the same owner is still waiting for Redis", ErrOutcomeUnknown)
}

// send tells Redis the count that is left. It has the seat's turn.
func (g *holding) send(p *patience, left int) error {
	var (
		c     = g.client
		delay backoff
		doubt bool // an earlier command may have been executed
		ends  = left == 0 && g.lock.side == shared
	)
	cleanUp := func() {
		if left == 0 {
			c.janitor.add(g.leftover())
		}
	}
	for {
		reply, gone, err := await(c, p,
			func() (lua.Released, error) {
				return g.lock.kind.release(c.redis, g.owner, left)
			},
			func(_ lua.Released, err error) {
				if err != nil {
					cleanUp()
				} else if ends {
					g.seat.tighten(g.owner)
				}
			})
		switch {
		case gone:
			if ends {
				g.seat.loosen(g.owner)
			}
			return fmt.Errorf("%w: no answer to the release within %v", ErrOutcomeUnknown, c.options.CommandTimeout)
		case err == nil && (reply.Held || left == 0 && doubt && time.Now().Before(g.lease.Deadline())):
			// Not held after a doubtful attempt, while our lease lasts: that attempt was the release. One that was to
			// leave levels behind takes nothing away.
			c.refused(g.lock, reply.Refusal)
			if reply.Held && left == 0 && !reply.Reading {
				g.lostReads()
			}
			return nil
		case err == nil:
			g.lost(watchdog.ErrGone)
			if err := g.lostError(); err != nil {
				return err
			}
			// The last level has ended as released, and nobody but its caller would hear of it.
			lost := &LostError{Lock: g.lock.name, Reason: watchdog.ErrGone}
			g.report(lost)
			return lost
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
			cleanUp()
			return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
		}
	}
}

// remove ends levels as released, and returns how many are left.
func (g *holding) remove(levels []*Hold) int {
	g.mu.Lock()
	cancels := make([]func(), 0, len(levels))
	for _, level := range levels {
		cancels = append(cancels, level.end(ErrReleased))
	}
	g.levels = slices.DeleteFunc(g.levels, func(h *Hold) bool { return slices.Contains(levels, h) })
	left := len(g.levels)
	renew := slices.ContainsFunc(g.levels, func(h *Hold) bool { return h.renew })
	g.mu.Unlock()
	for _, cancel := range cancels {
		cancel()
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
	g.seat.settle()
}

// lostError is why the lock was lost; nil if it was not.
func (g *holding) lostError() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if errors.Is(g.ended, ErrLost) {
		return g.ended
	}
	return nil
}

// resolve is the patience of what must be done whatever becomes of the caller and the client: an exchange of at most
// Options.CommandTimeout.
func (c *Client) resolve() *patience {
	p := c.patience(context.Background(), c.options.CommandTimeout)
	p.closing = nil
	return p
}

// refused reports, once per client, that a release was not announced.
func (c *Client) refused(l *Lock, refusal string) {
	if refusal != "" && c.publishRefused.CompareAndSwap(false, true) {
		c.options.Logger.Warn("holdfast: a lock was released, but Redis refuses to announce it; those who wait notice when its lease would have ended, or within 5 s: allow the channel in the ACL",
			"lock", l.name, "channel", l.kind.call("").channel, "refusal", refusal)
	}
}
