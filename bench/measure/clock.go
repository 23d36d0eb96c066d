package measure

import (
	"time"

	"golang.org/x/sys/unix"
)

// time.Now reads the machine's monotonic clock, less an offset of the process, without a system
// call.
var (
	began   = time.Now()
	beganAt = monotonic()
)

func monotonic() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err) // every Linux has it
	}
	return time.Duration(t.Nano())
}

// Now reads the monotonic clock of the machine. Unlike the readings inside time.Time, those of two
// processes can be compared; they agree within a microsecond.
func Now() time.Duration { return beganAt + time.Since(began) }

// SleepUntil sleeps until the clock shows at. It returns at once if that has passed.
func SleepUntil(at time.Duration) { time.Sleep(at - Now()) }
