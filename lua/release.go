package lua

import (
	"context"
	"strconv"

	"github.com/redis/rueidis"
)

var (
	release     = load("release.lua")
	forceUnlock = load("force_unlock.lua")
)

// The messages on a lock's channel.
const (
	// Unlocked says that the lock is free: one waiter may take it.
	Unlocked = "0"
	// UnlockedForAll says that every waiter should look.
	UnlockedForAll = "1"
)

// Announcement says how a release is made known to those who wait.
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
	// Held is false when there was nothing to release: the owner did not hold the lock, or nobody did.
	Held bool
	// Refusal is the server's reason for not publishing the announcement, though the lock was released. "" if it did.
	// It begins with the error code, such as NOPERM, on every version of the server.
	Refusal string
	// Reading tells that the owner gave back a write lock and has read holds left.
	Reading bool
	// To is who has the lock now.
	To To
	// Fence is the number of the acquisition by the next one in the process, if the lock is fenced and that has it.
	Fence int64
	// Began is when the lock was first passed on, as in [Turns], if the next one in the process has it since nobody waits elsewhere.
	Began int64
	// Ticket is of the place of the next one, if that got one.
	Ticket Ticket
}

// Release leaves owner with the given hold count. With count 0 the owner loses the lock, whatever count it had, and
// the release is announced.
func Release(ctx context.Context, c rueidis.CoreClient, lock, owner string, count int, a Announcement) (Released, error) {
	return released(release.run(ctx, c, []string{lock},
		[]string{owner, strconv.Itoa(count), a.Channel, a.Message, a.verb()}))
}

// ForceUnlock frees the lock whoever holds it, and announces it if it was held.
func ForceUnlock(ctx context.Context, c rueidis.CoreClient, lock string, a Announcement) (Released, error) {
	return released(forceUnlock.run(ctx, c, []string{lock}, []string{a.Channel, a.Message, a.verb()}))
}

func released(reply rueidis.RedisResult) (Released, error) {
	message, err := reply.ToMessage()
	if err != nil {
		return Released{}, Classify(err)
	}
	return outcomeOf(message)
}

// The states of a lock after its release, as the scripts give them.
const (
	notHeld = -1
	lowered = 0 // levels are left
	freed   = 1
	reading = 2 // its owner has read holds left
	passed  = 3 // to the next one in the process
	given   = 4 // to a waiter of another client
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
		return Released{Held: true, To: Next}, nil
	case given:
		return Released{Held: true, To: Other}, nil
	}
	return Released{}, unexpected("status " + strconv.FormatInt(status, 10))
}

// outcomeOf reads what the scripts say of one release: a status, or a list of it, a refusal and, for a lock that is passed
// on, a number and perhaps since when it is.
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
		case Next:
			r.Fence = number
		case Other:
			r.Ticket = Ticket(number)
		}
	}
	if len(values) == 4 {
		if r.To != Next {
			return Released{}, unexpected("a time with status " + strconv.Itoa(int(r.To)))
		}
		if r.Began, err = integer(values[3]); err != nil {
			return Released{}, err
		}
	}
	return r, nil
}
