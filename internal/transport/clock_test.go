package transport

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestClockIsAheadByTheRoundTripAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const trip = 40 * time.Millisecond
		skew := 3 * time.Hour
		server := func() time.Time { return time.Now().Add(skew).Truncate(time.Millisecond) }
		c := new(Clock)
		require.Zero(t, c.At(time.Now()), "nothing is known")
		exchange := func() {
			sent := time.Now()
			time.Sleep(trip / 2)
			executed := server()
			time.Sleep(trip / 2)
			c.Hear(executed, sent, time.Now())
		}
		requireKnown := func() {
			t.Helper()
			estimate := c.At(time.Now())
			require.False(t, estimate.Before(server()))
			require.LessOrEqual(t, estimate.Sub(server()), trip+2*time.Millisecond)
		}
		exchange()
		requireKnown()

		// A reply of a server that hung says little, but does not worsen what is known.
		sent := time.Now()
		time.Sleep(time.Second)
		c.Hear(server(), sent, time.Now())
		requireKnown()

		// A deadline from a message has only the wall clock, which may have been set since the
		// first reply.
		deadline := time.Now().Add(time.Minute)
		require.WithinDuration(t, c.At(deadline), c.At(deadline.Round(0)), time.Millisecond)

		for _, set := range []time.Duration{time.Hour, -2 * time.Hour} { // the clock is set
			skew += set
			exchange()
			requireKnown()
		}
		time.Sleep(trusted + time.Millisecond)
		require.Zero(t, c.At(time.Now()), "clocks drift")
		exchange()
		requireKnown()
	})
}
