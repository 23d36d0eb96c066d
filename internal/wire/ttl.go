package wire

import (
	"math"
	"time"
)

// NoExpiry is the TTL of a held lock that never expires. Other clients may acquire such a lock.
const NoExpiry time.Duration = -1

// NoKey is the PTTL of a key that does not exist.
const NoKey = -2

// TTL converts a PTTL reply. A TTL that is too long for a Duration becomes the longest Duration.
func TTL(milliseconds int64) time.Duration {
	if milliseconds == NoKey {
		return 0
	}
	if milliseconds < 0 {
		return NoExpiry
	}
	milliseconds = min(milliseconds, math.MaxInt64/int64(time.Millisecond))
	return time.Duration(milliseconds) * time.Millisecond
}

// WaiterTTL is how long a server remembers a waiter of a read-write lock that does not ask again. A
// waiter asks every 5 s.
const WaiterTTL = 7 * time.Second
