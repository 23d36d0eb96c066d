package doctor

import (
	"context"
	"slices"
	"time"
)

const (
	slowRoundTrip = 10 * time.Millisecond
	// longestRoundTrip is a tenth of the time between two renewals of a lease of 30 s.
	longestRoundTrip = time.Second

	mostPings  = 21
	pingTime   = 2 * time.Second // for all, if they take long
	fewestPing = 3
)

// roundTrip measures how long a reply takes.
func roundTrip(ctx context.Context, n *node) []Finding {
	var took []time.Duration
	began := time.Now()
	for len(took) < mostPings && (len(took) < fewestPing || time.Since(began) < pingTime) {
		sent := time.Now()
		if err := n.do(ctx, "PING").Error(); err != nil {
			return one(unknown(err, "how long PING takes"))
		}
		took = append(took, time.Since(sent))
	}
	slices.Sort(took)
	median := took[len(took)/2]
	const advice = "move closer to the server, or find out why it is busy. An acquisition takes " +
		"one round trip, and a wait takes several"
	switch {
	case median >= longestRoundTrip:
		return one(failure(advice, "a round trip takes %v, so renewals may come too late",
			median.Round(time.Millisecond)))
	case median >= slowRoundTrip:
		return one(warning(advice, "a round trip takes %v", median.Round(time.Millisecond)))
	}
	return one(ok("a round trip takes %v", median.Round(10*time.Microsecond)))
}
