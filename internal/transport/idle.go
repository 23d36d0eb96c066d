package transport

import (
	"context"
	"time"
)

// WhenIdle runs a command that no caller waits for, one at a time. Until two commands of callers
// have overlapped, it does so when no command is under way, and commands that come meanwhile wait
// for it for a moment: if it overlapped with one, rueidis would start to pipeline. It returns
// false, without running the command, if there is no such moment within about a second.
func (c *Calls) WhenIdle(command func(context.Context)) bool {
	c.mu.Lock()
	for tries := 0; !c.overlapped && (c.count > 0 || c.workers > 0); tries++ {
		c.mu.Unlock()
		if tries == mostTries {
			return false
		}
		time.Sleep(time.Millisecond)
		c.mu.Lock()
	}
	done := make(chan struct{})
	c.idleCommand = done
	c.mu.Unlock()
	ctx := commandContext{calls: c}
	defer func() { // even if a hook around rueidis panics
		ctx.end()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.idleCommand = nil
		close(done)
	}()
	command(&ctx)
	return true
}

// mostTries is how often WhenIdle looks for a moment without commands, a millisecond apart.
const mostTries = 1000

// awaitIdleCommand waits for the command of WhenIdle, for no longer than a grace. c.mu must be
// held; it is unlocked meanwhile.
func (c *Calls) awaitIdleCommand() {
	running := c.idleCommand
	if running == nil || c.overlapped {
		return
	}
	c.mu.Unlock()
	defer c.mu.Lock()
	limit := time.NewTimer(grace)
	defer limit.Stop()
	select {
	case <-running:
	case <-limit.C:
	}
}
