package lua

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

var (
	batchAcquire = load("batch_acquire.lua")
	batchRelease = load("batch_release.lua")
)

// BatchRequest is the request for one of several locks.
type BatchRequest struct {
	Lock  string
	Owner string
	Count int // the hold count to leave behind
	// Nested reports whether the owner holds the lock already and adds a level, as with [Reenter].
	// Otherwise the lock is taken, as by [Exclusive.Acquire].
	Nested bool
}

// AcquireBatch takes several reentrant locks with the given lease, all or none, in one command. It
// returns -1 and no holder when all are taken. Otherwise nothing has changed, and index is that of
// a lock that could not be taken: one that holder has or, if holder is nil, a nested one that its
// owner does not hold any more. The locks must differ, and on a cluster they must be in one slot.
func AcquireBatch(
	ctx context.Context, c rueidis.CoreClient, lease time.Duration, requests []BatchRequest,
) (index int, holder *Holder, err error) {
	keys := make([]string, len(requests))
	args := make([]string, 1, 3*len(requests)+1)
	args[0] = milliseconds(lease)
	named := make(map[string]bool, len(requests))
	for i, r := range requests {
		if named[r.Lock] { // it would be found free for two owners
			return -1, nil, &Error{Class: Permanent, Advice: "name each lock once",
				Message: "the lock " + strconv.Quote(r.Lock) + " is named twice"}
		}
		named[r.Lock] = true
		keys[i] = r.Lock
		args = append(args, r.Owner, strconv.Itoa(r.Count), flag(r.Nested))
	}
	rp := batchAcquire.run(ctx, c, keys, args)
	if rp.isNil() {
		return -1, nil, nil
	}
	rp.list(2)
	i := rp.integer()
	if i < 0 || i >= int64(len(requests)) {
		rp.unexpected(fmt.Sprintf("lock %d of %d", i, len(requests)))
	}
	if holder, err = inTheWay(rp.part()); err != nil {
		return -1, nil, err
	}
	return int(i), holder, nil
}

// BatchRelease is the release of one of several locks.
type BatchRelease struct {
	Lock         string
	Owner        string
	Count        int // the hold count to leave behind
	Announcement Announcement
}

// BatchReleased is the outcome of the release of one of several locks.
type BatchReleased struct {
	Released
	Err error // the server's refusal to release this one: an [*Error]
}

// ReleaseBatch releases several locks in one command, each as [Exclusive.Release] with an
// announcement does. If the server refuses one, its Err says why, and the others are released all
// the same. After an error of the whole command the outcome of each is unknown; a user whose ACL
// forbids one of the keys gets such an error. On a cluster all locks must be in one slot.
func ReleaseBatch(
	ctx context.Context, c rueidis.CoreClient, releases []BatchRelease,
) ([]BatchReleased, error) {
	keys := make([]string, len(releases))
	args := make([]string, 0, 5*len(releases))
	for i, r := range releases {
		keys[i] = r.Lock
		a := r.Announcement
		args = append(args, r.Owner, strconv.Itoa(r.Count), a.Channel, a.Message, a.verb())
	}
	rp := batchRelease.run(ctx, c, keys, args)
	if rp.list(len(releases)); rp.err != nil {
		return nil, rp.err
	}
	outcomes := make([]BatchReleased, len(releases))
	for i := range outcomes {
		outcomes[i].Released, outcomes[i].Err = released(rp.part())
	}
	return outcomes, nil
}
