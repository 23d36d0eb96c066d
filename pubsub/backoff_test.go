package pubsub

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestBackoffDoublesUpToItsLimitWithJitter(t *testing.T) {
	for failures, longest := range map[int]time.Duration{
		0: firstDelay, 1: firstDelay, 2: 2 * firstDelay, 4: 8 * firstDelay,
		8: longestDelay, 100: longestDelay, 1 << 30: longestDelay,
	} {
		distinct := make(map[time.Duration]bool)
		for range 50 {
			d := backoff(failures)
			require.GreaterOrEqual(t, d, longest/2)
			require.LessOrEqual(t, d, longest)
			distinct[d] = true
		}
		require.Greater(t, len(distinct), 1, "no jitter")
	}
	require.GreaterOrEqual(t, refusedBackoff(1), firstRefusedDelay/2)
	require.LessOrEqual(t, refusedBackoff(100), longestRefusedDelay)
}

func TestOutagesForgetNodesThatAreNotUsed(t *testing.T) {
	o := make(outages)
	now := time.Now()
	o.failed("a", now)
	o.failed("b", now.Add(30*time.Second))
	require.Len(t, o, 2)
	o.failed("b", now.Add(80*time.Second))
	require.Len(t, o, 1)
	require.Equal(t, 2, o["b"].failures)
	require.Zero(t, o.until("a"))
}

func TestWarningsAreBounded(t *testing.T) {
	w := make(warnings)
	for i := range 10 * mostWarnings {
		require.True(t, w.first(strconv.Itoa(i)))
		require.False(t, w.first(strconv.Itoa(i)))
		require.LessOrEqual(t, len(w), mostWarnings)
	}
}

func TestAdviceNamesTheMissingRule(t *testing.T) {
	for reply, remedy := range map[string]string{
		"NOPERM User ann has no permissions to access the 'c' channel":      "&c",
		"NOPERM User ann has no permissions to run the 'subscribe' command": "+subscribe",
		"ERR unknown command 'SUBSCRIBE'":                                   "see the error",
	} {
		require.Contains(t, advice(errors.New(reply), []string{"c"}, false), remedy)
	}
	require.Contains(t, advice(errors.New("NOPERM 'ssubscribe'"), []string{"c"}, true), "+ssubscribe")
}
