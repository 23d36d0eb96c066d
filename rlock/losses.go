package rlock

import "time"

// lostAt identifies what an owner lost: a lock, and its side.
type lostAt struct {
	place place
	side  side
}

// remember keeps a lost acquisition that has levels left to unlock, so that Unlock without a hold
// returns ErrLost instead of ErrNotHeld, even if this process noticed the loss first. mu is held.
func (g *holding) remember() {
	if g.part == nil && len(g.levels) > 0 {
		g.client.losses.Add(g.at(), g)
	}
}

// at returns the key under which the holding is remembered when it is lost.
func (g *holding) at() lostAt { return lostAt{g.seat.place, g.lock.side} }

// unlockLost unlocks the innermost level of a lost acquisition, and returns the loss; nil if no level is left to be unlocked.
func (c *Client) unlockLost(at lostAt) error {
	for _, g := range c.losses.Of(at) {
		if level := g.leaveInnermost(); level != nil {
			_, err := g.depart([]*Hold{level}, time.Now()) // sends nothing, so it needs no turn
			return err
		}
	}
	return nil
}
