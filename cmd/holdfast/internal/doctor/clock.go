package doctor

import (
	"context"
	"errors"
	"strconv"
	"time"
)

// largestOffset is how far the clock of the server may be from ours.
const largestOffset = time.Second

// clock compares the server's clock with ours. Leases do not need them to agree, since the server's
// alone counts.
func clock(ctx context.Context, n *node) []Finding {
	var offset, within time.Duration
	for i := range 5 { // the quickest exchange is the most precise
		sent := time.Now()
		words, err := n.do(ctx, "TIME").AsStrSlice()
		half := time.Since(sent) / 2
		var theirs time.Time
		if err == nil {
			theirs, err = parseTime(words)
		}
		if err != nil {
			return one(unknown(err, "that NTP runs on the server"))
		}
		if i == 0 || half < within {
			offset, within = theirs.Sub(sent.Add(half)), half
		}
	}
	distance := max(offset.Abs()-within, 0)
	const advice = "let NTP slew both clocks, and never let it step the clock of the server. " +
		"A step ends leases early or late, and Redisson's queues use the clocks of clients"
	if distance > largestOffset {
		return one(warning(advice, "the clocks of the server and of this machine differ by %v",
			offset.Abs().Round(100*time.Millisecond)))
	}
	return one(ok("the clocks of the server and of this machine differ by less than %v",
		(offset.Abs()+within).Truncate(time.Millisecond)+time.Millisecond))
}

// parseTime reads the reply of TIME: seconds and microseconds.
func parseTime(words []string) (time.Time, error) {
	if len(words) != 2 {
		return time.Time{}, errors.New("unexpected reply to TIME")
	}
	seconds, err1 := strconv.ParseInt(words[0], 10, 64)
	micros, err2 := strconv.ParseInt(words[1], 10, 64)
	return time.Unix(seconds, micros*1000), errors.Join(err1, err2)
}
