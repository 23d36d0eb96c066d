package transport

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/wait"
)

// Setting the timer wakes a thread, and so does the timer: either for each command would cost more
// than all else in a process that waits for its lock.
func TestOneTimerServesManyCommands(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Calls) {
		command := func() { _, _ = c.Begin(endless(t), time.Now()).End(nil) }
		sweepAt := func() time.Time {
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.sweepAt
		}
		command()
		set := sweepAt()
		require.Equal(t, firstTick, time.Until(set))
		for time.Until(set) > time.Millisecond {
			time.Sleep(time.Millisecond)
			command()
			require.Equal(t, set, sweepAt())
		}
		time.Sleep(time.Until(set))
		synctest.Wait()
		require.Zero(t, sweepAt(), "no command is under way")
		require.False(t, c.timer.Stop(), "it is pending")
	})
}

func TestCallEndsInTimeAlthoughTheTimerIsSetForLater(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Calls) {
		_, _ = c.Begin(endless(t), time.Now()).End(nil)
		began := time.Now()
		k := c.Begin(wait.NewBudget(t.Context(), nil, minBudget), began)
		state, _ := k.End(hang(k))
		require.Equal(t, Abandoned, state)
		require.Equal(t, minBudget, time.Since(began))
	})
}
