package transport

import "time"

// Calls under way are checked every calmTick, and about every tick once a check has found one
// slower than slow. Processes that wake up more often take the processor from Redis.
const tick, calmTick, slow = 2 * time.Millisecond, 200 * time.Millisecond, 20 * time.Millisecond

// sweep ends calls: at their limit, or a grace after it has found that their budget ended early.
func (c *Calls) sweep() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	pause := calmTick
	if now.Sub(c.underway.next.sentAt) > slow {
		// Many slow calls mean that the server hangs, and are checked less often.
		pause = tick + time.Duration(c.count)*time.Microsecond
	}
	for k := c.underway.next; k != &c.underway; k = k.next {
		if end := now.Add(grace); end.Before(k.limit) &&
			(k.budget.Closing() || k.budget.Ctx.Err() != nil) {
			k.limit = end
		}
		if left := k.limit.Sub(now); left > 0 {
			pause = min(pause, left)
		} else if k.ended.CompareAndSwap(false, true) {
			close(k.done)
		}
	}
	c.sweepAt = time.Time{}
	if c.count > 0 {
		c.setTimer(now, pause)
	}
}

// setTimer makes sweep run a pause after now, which may be long ago. c.mu must be held.
func (c *Calls) setTimer(now time.Time, pause time.Duration) {
	c.sweepAt = now.Add(pause)
	c.timer.Reset(time.Until(c.sweepAt))
}
