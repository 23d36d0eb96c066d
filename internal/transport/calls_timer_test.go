package transport

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/wait"
)

// Setting the timer wakes a thread, and so does the timer: either for each command would take the
// processor from Redis.
func TestOneTimerServesManyCommands(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Calls) {
		command := func() { _, _ = c.Begin(unlimited(t), time.Now()).End(nil) }
		command()
		set := sweepAt(c)
		require.Equal(t, calmTick, time.Until(set))
		for time.Until(set) > time.Millisecond {
			time.Sleep(time.Millisecond)
			command()
			require.Equal(t, set, sweepAt(c))
		}
		time.Sleep(time.Until(set))
		synctest.Wait()
		require.Zero(t, sweepAt(c), "no command is under way")
		require.False(t, c.timer.Stop(), "no command is under way")
	})
}

func TestCallEndsInTimeAlthoughTheTimerIsSetForLater(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Calls) {
		_, _ = c.Begin(unlimited(t), time.Now()).End(nil)
		began := time.Now()
		k := c.Begin(wait.NewBudget(t.Context(), nil, minBudget), began)
		state, _ := k.End(hang(k))
		require.Equal(t, Abandoned, state)
		require.Equal(t, minBudget, time.Since(began))
	})
}

// sweepAt returns when the timer of c fires, or zero.
func sweepAt(c *Calls) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sweepAt
}
