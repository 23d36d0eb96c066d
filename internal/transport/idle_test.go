package transport

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWhenIdleWaitsUntilNoCommandIsUnderWay(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Calls) {
		c.overlapped = false
		for name, end := range map[string]func() func(){
			"a caller's": func() func() {
				k := c.Begin(forever(), time.Now(), "")
				require.NotNil(t, k)
				return func() { _, _ = k.End(nil) }
			},
			"a worker's": func() func() {
				reply := make(chan struct{})
				go func() {
					_, _, _ = detach(c, forever(), func(context.Context) (int, error) {
						<-reply
						return 0, nil
					}, nil)
				}()
				return func() { close(reply) }
			},
		} {
			c.recordReply(nil, time.Now(), Executed) // so that callers may send
			ends, ran := end(), make(chan bool, 1)
			synctest.Wait()
			go func() { ran <- c.WhenIdle(func(context.Context) {}) }()
			time.Sleep(100 * time.Millisecond)
			require.Empty(t, ran, name)
			ends()
			time.Sleep(time.Millisecond)
			synctest.Wait()
			require.True(t, <-ran, name)
		}
		require.False(t, c.overlapped)
	})
}

// Longer than a moment would be the delay of a server that hangs.
func TestCommandsWaitForTheIdleCommandForAMoment(t *testing.T) {
	for takes, overlaps := range map[time.Duration]bool{grace / 2: false, time.Minute: true} {
		inBubble(t, func(t *testing.T, c *Calls) {
			c.overlapped = false
			go c.WhenIdle(func(context.Context) { time.Sleep(takes) })
			synctest.Wait()
			start := time.Now()
			k := c.Begin(forever(), start, "")
			require.Equal(t, min(takes, grace), time.Since(start))
			require.Equal(t, overlaps, c.overlapped)
			_, _ = k.End(nil)
			k = c.Begin(forever(), start, "")
			require.Equal(t, min(takes, grace), time.Since(start), "it waits once")
			_, _ = k.End(nil)
			time.Sleep(takes)
			synctest.Wait()
		})
	}
}
