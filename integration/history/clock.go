package history

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Instant is a time in nanoseconds on the monotonic clock of this machine. All its processes share
// that clock, and it goes on while they are stopped.
type Instant int64

// Now returns the current instant.
func Now() Instant {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		panic(fmt.Sprintf("history: no monotonic clock: %v", err)) // no argument could be wrong
	}
	return Instant(now.Nano())
}

// At returns the instant of t, if t has a reading of the monotonic clock.
func At(t time.Time) Instant { return Now().Add(time.Until(t)) }

// Add returns the instant d later.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d) }

// Sub returns the time from other to i.
func (i Instant) Sub(other Instant) time.Duration { return time.Duration(i - other) }
