package lua

import (
	"context"
	"strconv"

	"github.com/redis/rueidis"
)

var (
	release     = load("release.lua")
	handOver    = load("hand_over.lua")
	forceUnlock = load("force_unlock.lua")
)

// The messages on a lock's channel.
const (
	// Unlocked means that the lock is free: one waiter may take it.
	Unlocked = "0"
	// UnlockedForAll means that every waiter should ask for the lock.
	UnlockedForAll = "1"
)

// Announcement is the message that makes a release known to the waiters.
type Announcement struct {
	Channel string
	Message string
	Sharded bool // SPUBLISH instead of PUBLISH
}

func (a Announcement) verb() string {
	if a.Sharded {
		return "SPUBLISH"
	}
	return "PUBLISH"
}

// Released is the outcome of a release.
type Released struct {
	// Held is false when there was nothing to release: the owner did not hold the lock, or no owner
	// did.
	Held bool
	// Refusal is the server's reason for not publishing the announcement of a lock that was
	// released; "" if it was published. It begins with the error code, such as NOPERM, on every
	// version of the server.
	Refusal string
	// Reading reports whether the owner gave back a write lock and has read holds left.
	Reading bool
	// To says which owner has the lock now.
	To To
	// Fence is the fencing token of the successor, if it has the lock and the lock is fenced.
	Fence int64
	// Began is when the streak began, as in [Streak], if the successor has the lock because it
	// could not be granted to a waiter of another process.
	Began int64
	// Ticket is the ticket of the successor, if it was registered.
	Ticket Ticket
}

// ForceUnlock frees the lock regardless of its holder, and announces that if it was held.
func ForceUnlock(
	ctx context.Context, c rueidis.CoreClient, lock string, a Announcement,
) (Released, error) {
	args := []string{a.Channel, a.Message, a.verb()}
	return released(forceUnlock.run(ctx, c, []string{lock}, args))
}

func released(reply rueidis.RedisResult) (Released, error) {
	message, err := reply.ToMessage()
	if err != nil {
		return Released{}, Classify(err)
	}
	return outcomeOf(message)
}

// The statuses of a release, as the scripts return them.
const (
	notHeld = -1
	lowered = 0 // levels are left
	freed   = 1
	reading = 2 // its owner has read holds left
	passed  = 3 // to the successor
	granted = 4 // to a waiter, by its registration
)

// outcome reads a status.
func outcome(m rueidis.RedisMessage) (Released, error) {
	status, err := integer(m)
	if err != nil {
		return Released{}, err
	}
	switch status {
	case notHeld:
		return Released{}, nil
	case lowered, freed:
		return Released{Held: true}, nil
	case reading:
		return Released{Held: true, Reading: true}, nil
	case passed:
		return Released{Held: true, To: Successor}, nil
	case granted:
		return Released{Held: true, To: Other}, nil
	}
	return Released{}, unexpected("status " + strconv.FormatInt(status, 10))
}

// outcomeOf reads the reply for one release: a status, or a list of it, a refusal and, for a lock
// that is handed over, a number and perhaps the beginning of the streak.
func outcomeOf(message rueidis.RedisMessage) (Released, error) {
	if !message.IsArray() {
		return outcome(message)
	}
	values, err := message.ToArray()
	if err != nil {
		return Released{}, Classify(err)
	}
	if len(values) != 3 && len(values) != 4 {
		if err := sized(values, 2); err != nil {
			return Released{}, err
		}
	}
	r, err := outcome(values[0])
	if err != nil {
		return Released{}, err
	}
	refusal, err := text(values[1])
	if err != nil {
		return Released{}, err
	}
	r.Refusal = withCode(refusal)
	if len(values) > 2 {
		number, err := decimal(values[2])
		if err != nil {
			return Released{}, err
		}
		switch r.To {
		case Successor:
			r.Fence = number
		case Other:
			r.Ticket = Ticket(number)
		}
	}
	if len(values) == 4 {
		if r.To != Successor {
			return Released{}, unexpected("a time with status " + strconv.Itoa(int(r.To)))
		}
		if r.Began, err = integer(values[3]); err != nil {
			return Released{}, err
		}
	}
	return r, nil
}
