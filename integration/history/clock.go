package history

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Instant is a time in nanoseconds on the monotonic clock of this machine. All its processes share
// that clock, and it goes on while they are stopped. In a testing/synctest bubble it is a time on
// the bubble's clock.
type Instant int64

// Now returns the current instant.
func Now() Instant {
	if now := time.Now(); now.Before(inBubbles) {
		return Instant(now.UnixNano())
	}
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		panic(fmt.Sprintf("history: no monotonic clock: %v", err)) // no argument could be wrong
	}
	return Instant(now.Nano())
}

// inBubbles is a time to which only the clock of a bubble goes back: it starts in the year 2000.
var inBubbles = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// At returns the instant of t, if t has a reading of the monotonic clock.
func At(t time.Time) Instant { return Now().Add(time.Until(t)) }

// Add returns the instant d later.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d) }

// Sub returns the time from other to i.
func (i Instant) Sub(other Instant) time.Duration { return time.Duration(i - other) }
