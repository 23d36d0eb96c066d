package lua

import (
	"context"
	"strconv"

	"github.com/redis/rueidis"
)

var forceUnlock = load("force_unlock.lua")

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

// outcomes has the outcome for each status that the scripts return for a release, from -1.
var outcomes = [...]Released{
	{},                          // the owner did not hold the lock
	{Held: true},                // levels are left
	{Held: true},                // the lock is free
	{Held: true, Reading: true}, // the owner has read holds left
	{Held: true, To: Successor}, // the successor has the lock
	{Held: true, To: Other},     // a waiter has it, by its registration
}

// released reads the reply for one release: a status, or a list of it, a refusal and, for a lock
// that is handed over, a number and perhaps the beginning of the streak.
func released(rp reply) (out Released, err error) {
	size := 1
	if rp.message.IsArray() {
		size = rp.list(2, 3, 4)
	}
	status := rp.integer()
	if status < -1 || status+1 >= int64(len(outcomes)) {
		rp.unexpected("status " + strconv.FormatInt(status, 10))
	} else {
		out = outcomes[status+1]
	}
	if size > 1 {
		out.Refusal = withCode(rp.text())
	}
	if size > 2 {
		number := rp.decimal()
		switch out.To {
		case Successor:
			out.Fence = number
		case Other:
			out.Ticket = Ticket(number)
		}
	}
	if size > 3 {
		out.Began = rp.integer()
		if out.To != Successor {
			rp.unexpected("a time with status " + strconv.FormatInt(status, 10))
		}
	}
	if rp.err != nil {
		return Released{}, rp.err
	}
	return out, nil
}
