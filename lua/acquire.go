package lua

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

var reenter = load("reenter.lua")

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

// holder reads who is in the way of an acquisition; nil after an error.
func (rp *reply) holder() *Holder {
	left, owner, nap := rp.integer(), rp.text(), rp.integer()
	if rp.err != nil {
		return nil
	}
	return &Holder{Owner: strings.TrimSuffix(owner, writeSuffix), TTL: ttl(left),
		Next: left == free, Nap: time.Duration(max(0, nap)) * time.Millisecond}
}

// inTheWay reads the reply of a script that takes a lock. It returns nil if the lock was taken.
func inTheWay(rp reply) (*Holder, error) {
	if rp.isNil() {
		return nil, nil
	}
	rp.list(3)
	holder := rp.holder()
	return holder, rp.err
}

// Reenter adds a level to a lock that owner holds: its count becomes count, its TTL at least lease.
// It returns false, and changes nothing, when owner does not hold the lock.
func Reenter(
	ctx context.Context, c rueidis.CoreClient, lock, owner string, count int, lease time.Duration,
) (bool, error) {
	args := []string{owner, strconv.Itoa(count), milliseconds(lease)}
	return reentered(reenter.run(ctx, c, []string{lock}, args))
}

func reentered(rp reply) (bool, error) {
	held := rp.boolean()
	return held, rp.err
}
