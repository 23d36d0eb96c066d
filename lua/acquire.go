package lua

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

var (
	acquire = load("acquire.lua")
	reenter = load("reenter.lua")
)

// Holder says who is in the way of an acquisition.
type Holder struct {
	Owner string        // "<client id>:<token>"
	TTL   time.Duration // what is left of its lease, or [NoExpiry]
}

// Acquire takes the lock for owner with the given hold count and lease, or returns who holds it.
// A nil holder means that the owner has it. On success the lock's TTL is at least lease; on failure nothing changed.
func Acquire(ctx context.Context, c rueidis.Client, lock, owner string, count int, lease time.Duration) (*Holder, error) {
	reply := acquire.run(ctx, c, []string{lock}, []string{owner, strconv.Itoa(count), milliseconds(lease)})
	if rueidis.IsRedisNil(reply.Error()) {
		return nil, nil
	}
	values, err := list(reply, 2)
	if err != nil {
		return nil, err
	}
	left, err := integer(values[0])
	if err != nil {
		return nil, err
	}
	owner, err = text(values[1])
	if err != nil {
		return nil, err
	}
	return &Holder{Owner: owner, TTL: ttl(left)}, nil
}

// Reenter adds a level to a lock that owner holds: its count becomes count, its TTL at least lease.
// It returns false, and changes nothing, when owner does not hold the lock.
func Reenter(ctx context.Context, c rueidis.Client, lock, owner string, count int, lease time.Duration) (bool, error) {
	reply, err := reenter.run(ctx, c, []string{lock}, []string{owner, strconv.Itoa(count), milliseconds(lease)}).ToMessage()
	if err != nil {
		return false, Classify(err)
	}
	return boolean(reply)
}
