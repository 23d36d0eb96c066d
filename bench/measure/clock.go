package measure

import (
	"time"

	"golang.org/x/sys/unix"
)

// The readings of time.Now come from the machine's monotonic clock, less an offset of the process. It takes no system call to
// read them.
var (
	began   = time.Now()
	beganAt = monotonic()
)

func monotonic() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err) // there is no Linux without it
	}
	return time.Duration(t.Nano())
}

// Now reads the monotonic clock of the machine. Unlike the readings inside time.Time those of two processes can be compared;
// they agree within a microsecond.
func Now() time.Duration { return beganAt + time.Since(began) }

// SleepUntil returns when the clock shows at, or at once if that has passed.
func SleepUntil(at time.Duration) { time.Sleep(at - Now()) }
