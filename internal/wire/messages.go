package wire

import (
	"strconv"
	"strings"
)

// The messages on a lock's channel.
const (
	Unlocked       = "0" // the lock is free, and one waiter may take it
	UnlockedForAll = "1" // every waiter should ask for the lock
)

// Grant is the message to a waiter whom a release has given the lock.
type Grant struct {
	Lock   string
	Owner  string
	Ticket int64 // of the registration that the grant removed
	Local  bool  // the notified client has released the lock
	Fence  int64 // the fencing token, if the lock is fenced
	Streak Streak
}

// ParseGrant parses a message on a client's own channel; ok is false if the message is not a grant.
func ParseGrant(message string) (g Grant, ok bool) {
	parts := strings.SplitN(message, " ", 6)
	if len(parts) < 6 {
		return Grant{}, false
	}
	var numbers [4]int64
	for i := range numbers {
		var err error
		numbers[i], err = strconv.ParseInt(parts[1+i], 10, 64)
		if err != nil && i == 0 {
			numbers[i], err = score(parts[1+i])
		}
		if err != nil {
			return Grant{}, false
		}
	}
	return Grant{Owner: parts[0], Ticket: numbers[0], Local: strings.HasPrefix(parts[1], "+"),
		Fence: numbers[1], Lock: parts[5],
		Streak: Streak{Count: int(numbers[2]), Began: numbers[3]}}, true
}

// score parses a ticket with an exponent. A ticket is the score of a sorted set, and a server may
// format a score that ends in many zeros in this way.
func score(text string) (int64, error) {
	f, err := strconv.ParseFloat(text, 64)
	if n := int64(f); err == nil && strings.Contains(text, "e+") && float64(n) == f {
		return n, nil
	}
	return 0, strconv.ErrSyntax
}

// Streak counts the hand-overs of a lock since the lock was free. The count is limited, so that the
// lock becomes free now and then. The count goes from owner to owner with the lock.
type Streak struct {
	Count int
	Began int64 // time of the second hand-over, in ms of the server's clock; 0 if unknown
}
