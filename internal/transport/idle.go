package transport

import (
	"context"
	"time"
)

// WhenIdle runs a command that no caller waits for, one command at a time. Until two commands of
// callers have overlapped, WhenIdle runs the command when no other is under way, and new commands
// wait a moment for the command, because rueidis would start to pipeline if two commands
// overlapped. If there is no such moment within about a second, WhenIdle returns false without
// running the command.
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

// awaitIdleCommand waits for the command of WhenIdle, for at most a grace. c.mu must be held;
// awaitIdleCommand unlocks it meanwhile.
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
