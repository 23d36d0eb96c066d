package history

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Instant is nanoseconds on the monotonic clock of this machine, which is the same for all of its processes and goes on
// while they are stopped.
type Instant int64

// Now reads the clock.
func Now() Instant {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		panic(fmt.Sprintf("history: no monotonic clock: %v", err)) // it takes no argument that could be wrong
	}
	return Instant(now.Nano())
}

// At is the instant at which t is, if t has a reading of the monotonic clock.
func At(t time.Time) Instant { return Now().Add(time.Until(t)) }

// Add is the instant d later.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d) }

// Sub is the time from other to i.
func (i Instant) Sub(other Instant) time.Duration { return time.Duration(i - other) }
