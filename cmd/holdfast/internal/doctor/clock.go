package doctor

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"
)

// exchange is one command and its reply.
type exchange struct{ sent, received time.Time }

// duration returns how long the reply took.
func (e exchange) duration() time.Duration { return e.received.Sub(e.sent) }

// largestOffset is how far the clock of the server may be from ours.
const largestOffset = time.Second

// clock compares the server's clock with ours. Leases do not need them to agree, since the server's
// alone counts.
func clock(ctx context.Context, n *node) []Finding {
	var offset, within time.Duration
	for i := range 5 { // the quickest exchange is the most precise
		sent := time.Now()
		words, err := n.do(ctx, "TIME").AsStrSlice()
		e := exchange{sent, time.Now()}
		var theirs time.Time
		if err == nil {
			theirs, err = parseTime(words)
		}
		if err != nil {
			return one(unknown(err, "that NTP runs on the server"))
		}
		if half := e.duration() / 2; i == 0 || half < within {
			offset, within = theirs.Sub(sent.Add(half)), half
		}
	}
	distance := max(offset.Abs()-within, 0)
	const advice = "let NTP slew both clocks, and never step the server's. Redis alone counts " +
		"leases, but a step ends them early or late, and Redisson's queues use clients' clocks"
	if distance > largestOffset {
		return one(warning(advice, "the server's clock is %v from ours",
			offset.Round(100*time.Millisecond)))
	}
	return one(ok("the server's clock is less than %v from ours",
		(offset.Abs()+within).Truncate(time.Millisecond)+time.Millisecond))
}

// parseTime reads the reply of TIME: seconds and microseconds.
func parseTime(words []string) (time.Time, error) {
	if len(words) != 2 {
		return time.Time{}, errors.New("TIME replied something else")
	}
	seconds, err1 := strconv.ParseInt(words[0], 10, 64)
	micros, err2 := strconv.ParseInt(words[1], 10, 64)
	return time.Unix(seconds, micros*1000), errors.Join(err1, err2)
}

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
	const advice = "move closer to the server, or see what it is busy with: an acquisition takes " +
		"one round trip, and a wait several"
	switch {
	case median >= longestRoundTrip:
		return one(failure(advice, "%v; renewals may come too late", median.Round(time.Millisecond)))
	case median >= slowRoundTrip:
		return one(warning(advice, "%v", median.Round(time.Millisecond)))
	}
	return one(ok("%v", median.Round(10*time.Microsecond)))
}
