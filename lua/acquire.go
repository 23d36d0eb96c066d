package lua

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

var (
	acquire = load("acquire.lua")
	reenter = load("reenter.lua")

	fencedAcquire = load("fenced_acquire.lua")
)

// Holder describes the owner that is in the way of an acquisition.
type Holder struct {
	Owner string        // "<client id>:<token>"; "" when readers that waited have their turn
	TTL   time.Duration // the rest of its lease, or [NoExpiry]
	// Next reports whether the owner does not hold the lock, but comes before the one that asked.
	Next bool
	// Nap is how long to wait at most before asking again, if that is not the TTL; else 0.
	Nap time.Duration
	// Clock is the server's time when it answered, in whole milliseconds; zero unless the lock is a
	// fair one.
	Clock time.Time
}

// fenceOf reads the fencing token of an acquisition.
func fenceOf(lock string, message rueidis.RedisMessage) (int64, error) {
	fence, err := message.AsInt64()
	if err == nil {
		return fence, nil
	}
	text, err := text(message)
	if err != nil {
		return 0, err
	}
	e := noNumber(lock, text)
	e.Class = Unknown // the owner has the lock, and no use for it
	return 0, e
}

// noNumber returns the error for a counter that something else wrote to.
func noNumber(lock, token string) *Error {
	return &Error{
		Class:   Permanent,
		Message: fmt.Sprintf("the token %q of %q is not a number", token, lock),
		Advice:  "something else writes to the key " + tokenKey(lock),
	}
}

// miscounted adds advice to a refusal that concerns the counter of a fenced lock.
func miscounted(lock string, err error) error {
	var e *Error
	switch {
	case !errors.As(err, &e):
	case e.Code == "WRONGTYPE":
		e.Advice = "the key of this name is not a lock, or " + tokenKey(lock) +
			" is not a number: choose another name"
	case strings.Contains(e.Message, "not an integer"),
		strings.Contains(e.Message, "would overflow"):
		e.Advice = "the key " + tokenKey(lock) +
			" cannot count on, so something else writes to it: " +
			"set it to a number that is larger than any token in use"
	}
	return err
}

// inTheWay reads the reply of a script that takes a lock. It returns nil if the lock was taken.
func inTheWay(reply rueidis.RedisResult) (*Holder, error) {
	if rueidis.IsRedisNil(reply.Error()) {
		return nil, nil
	}
	values, err := reply.ToArray()
	if err != nil {
		return nil, Classify(err)
	}
	return holderOf(values)
}

// holderOf reads the part of a reply that describes who is in the way.
func holderOf(values []rueidis.RedisMessage) (*Holder, error) {
	if err := sized(values, 3); err != nil {
		return nil, err
	}
	left, err := integer(values[0])
	if err != nil {
		return nil, err
	}
	owner, err := text(values[1])
	if err != nil {
		return nil, err
	}
	nap, err := integer(values[2])
	if err != nil {
		return nil, err
	}
	holder := &Holder{
		Owner: strings.TrimSuffix(owner, writeSuffix),
		Nap:   time.Duration(max(0, nap)) * time.Millisecond,
	}
	if holder.Next = left == free; !holder.Next {
		holder.TTL = ttl(left)
	}
	return holder, nil
}

// free is the PTTL of a key that does not exist.
const free = -2

// Reenter adds a level to a lock that owner holds: its count becomes count, its TTL at least lease.
// It returns false, and changes nothing, when owner does not hold the lock.
func Reenter(
	ctx context.Context, c rueidis.CoreClient, lock, owner string, count int, lease time.Duration,
) (bool, error) {
	args := []string{owner, strconv.Itoa(count), milliseconds(lease)}
	return reentered(reenter.run(ctx, c, []string{lock}, args))
}

func reentered(reply rueidis.RedisResult) (bool, error) {
	message, err := reply.ToMessage()
	if err != nil {
		return false, Classify(err)
	}
	return boolean(message)
}
