package wire

import (
	"strconv"
	"strings"
)

// The messages on a lock's channel.
const (
	Unlocked       = "0" // the lock is free: one waiter may take it
	UnlockedForAll = "1" // every waiter should ask for the lock
)

// Grant is the message to a waiter that has been granted a lock.
type Grant struct {
	Lock   string
	Owner  string
	Ticket int64 // of the registration that was used up
	Local  bool  // the release was by the client that is told
	Fence  int64 // the fencing token, if the lock is fenced
	Streak Streak
}

// ParseGrant reads a message on a client's own channel; ok is false if it is not a grant.
func ParseGrant(message string) (g Grant, ok bool) {
	parts := strings.SplitN(message, " ", 6)
	if len(parts) < 6 {
		return Grant{}, false
	}
	var numbers [4]int64
	for i := range numbers {
		var err error
		numbers[i], err = strconv.ParseInt(parts[1+i], 10, 64)
		if err != nil {
			return Grant{}, false
		}
	}
	return Grant{Owner: parts[0], Ticket: numbers[0], Local: strings.HasPrefix(parts[1], "+"),
		Fence: numbers[1], Lock: parts[5],
		Streak: Streak{Count: int(numbers[2]), Began: numbers[3]}}, true
}

// Streak says how often a lock was handed over since it was free. It is limited, so that the lock
// is free now and then. It goes from owner to owner with the lock.
type Streak struct {
	Count int
	Began int64 // the second time, in milliseconds of the server's clock; 0 if not noted
}
