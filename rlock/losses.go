package rlock

// lossKey identifies what an owner lost, by its session with a lock and the mode.
type lossKey struct {
	session sessionKey
	mode    mode
}

// remember keeps a lost acquisition that has levels left to unlock, so that Unlock without a hold
// returns ErrLost instead of ErrNotHeld, even if this process noticed the loss first. a.mu must be
// held.
func (a *acquisition) remember() {
	if a.part == nil && len(a.levels) > 0 {
		a.client.losses.Add(a.key(), a)
	}
}

// unlockLost unlocks the innermost level of a lost acquisition, and returns the loss; nil if there
// is no level left to unlock.
func (c *Client) unlockLost(key lossKey) error {
	for _, a := range c.losses.Of(key) {
		if level := a.claimInnermost(); level != nil {
			// It sends nothing, so the session need not be locked.
			_, err := a.releaseLevel(level)
			return err
		}
	}
	return nil
}
