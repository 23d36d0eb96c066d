package rlock

import "time"

// lostAt says which acquisition of an owner was lost: of which lock, and which side of it.
type lostAt struct {
	place place
	side  side
}

// remember keeps a lost acquisition whose levels have still to be unlocked. Whoever unlocks them without a hold at hand must
// hear that they were lost, and not that they were never held, also if this process noticed it first. It is called with mu held.
func (g *holding) remember() {
	if g.part == nil && len(g.levels) > 0 {
		g.client.losses.Add(g.at(), g)
	}
}

// at is where the holding is remembered when it is lost.
func (g *holding) at() lostAt { return lostAt{g.seat.place, g.lock.side} }

// unlockLost unlocks the innermost level of a lost acquisition, and returns the loss; nil if no level is left to be unlocked.
func (c *Client) unlockLost(at lostAt) error {
	for _, g := range c.losses.Of(at) {
		if level := g.leaveInnermost(); level != nil {
			_, err := g.depart([]*Hold{level}, time.Now()) // nothing is to be sent, so it needs no turn
			return err
		}
	}
	return nil
}
