package watchdog

import (
	"math"
	"time"
)

// epoch is the instant that deadlines are counted from. A deadline is kept as a Duration because
// that can be read atomically. Adding it to epoch gives back a time with a monotonic reading, which
// UnixNano would lose.
var epoch = time.Now()

// never is an instant that does not come.
const never time.Duration = math.MaxInt64

// now returns the current instant, counted from epoch.
func now() time.Duration { return time.Since(epoch) }

// Drift returns the part of a lease that its holder gives up for safety: one per cent for clocks
// that run at different speeds, plus 2 ms for a store that counts in whole milliseconds. A lease of
// 2 ms or less is all drift.
func Drift(lease time.Duration) time.Duration {
	return lease/100 + 2*time.Millisecond
}

// Deadline returns the instant until which a lease may be trusted that was taken or renewed by a
// request sent at start: start + lease - [Drift](lease). It is exclusive: at the deadline the lease
// is no longer trusted.
//
// Take start from time.Now immediately before the request is sent, never after its reply. The
// deadline has a monotonic reading if start has one; without it a step of the wall clock moves the
// deadline.
func Deadline(start time.Time, lease time.Duration) time.Time {
	return start.Add(lease - Drift(lease))
}
