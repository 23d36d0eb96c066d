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

// BatchRequest is what an owner wants of one of several locks.
type BatchRequest struct {
	Lock  string
	Owner string
	Count int // to leave behind
	// Nested tells that the owner holds the lock already and adds a level, as with [Reenter]; else
	// it is as with [Acquire].
	Nested bool
}

// AcquireBatch takes several reentrant locks with the given lease, all or none, in one command. It
// returns -1 and no holder when all are taken. Else nothing has changed, and index is that of one
// lock that is in the way: of a nested one that its owner does not hold any more when holder is
// nil, else of one that holder has. The locks must differ, and on a cluster they must be in one
// slot.
func AcquireBatch(
	ctx context.Context, c rueidis.CoreClient, lease time.Duration, requests []BatchRequest,
) (
	index int, holder *Holder, err error,
) {
	keys := make([]string, len(requests))
	args := make([]string, 1, 3*len(requests)+1)
	args[0] = milliseconds(lease)
	for i, t := range requests {
		keys[i] = t.Lock
		args = append(args, t.Owner, strconv.Itoa(t.Count), flag(t.Nested))
	}
	if err := differ(keys); err != nil {
		return -1, nil, err
	}
	return oneInTheWay(batchAcquire.run(ctx, c, keys, args), len(requests))
}

// differ refuses a lock that is named twice: it would be found free for two owners.
func differ(locks []string) error {
	seen := make(map[string]bool, len(locks))
	for _, lock := range locks {
		if seen[lock] {
			return &Error{
				Class:   Permanent,
				Message: "the lock " + strconv.Quote(lock) + " is named twice",
				Advice:  "name each lock once",
			}
		}
		seen[lock] = true
	}
	return nil
}

// oneInTheWay reads the reply of the script that takes several locks.
func oneInTheWay(reply rueidis.RedisResult, requests int) (index int, holder *Holder, err error) {
	if rueidis.IsRedisNil(reply.Error()) {
		return -1, nil, nil
	}
	values, err := list(reply, 2)
	if err != nil {
		return -1, nil, err
	}
	i, err := integer(values[0])
	if err != nil {
		return -1, nil, err
	}
	if i < 0 || i >= int64(requests) {
		return -1, nil, unexpected(fmt.Sprintf("lock %d of %d", i, requests))
	}
	if values[1].IsNil() {
		return int(i), nil, nil
	}
	found, err := values[1].ToArray()
	if err != nil {
		return -1, nil, Classify(err)
	}
	if holder, err = holderOf(found); err != nil {
		return -1, nil, err
	}
	return int(i), holder, nil
}

// BatchRelease says what an owner leaves behind of one of several locks.
type BatchRelease struct {
	Lock         string
	Owner        string
	Count        int
	Announcement Announcement
}

// BatchReleased is the outcome of the release of one of several locks.
type BatchReleased struct {
	Released
	Err error // the server's refusal to release this one: an [*Error]
}

// ReleaseBatch is [Release] for each of several locks, in one command. One that the server refuses
// does not keep the others: its Err says why. An error of the whole command tells nothing about any
// of them; that is also the one of a user whose ACL forbids just one of the keys. On a cluster all
// locks must be in one slot.
func ReleaseBatch(
	ctx context.Context, c rueidis.CoreClient, releases []BatchRelease,
) ([]BatchReleased, error) {
	keys := make([]string, len(releases))
	args := make([]string, 0, 5*len(releases))
	for i, l := range releases {
		keys[i] = l.Lock
		args = append(
			args,
			l.Owner,
			strconv.Itoa(l.Count),
			l.Announcement.Channel,
			l.Announcement.Message,
			l.Announcement.verb(),
		)
	}
	replies, err := list(batchRelease.run(ctx, c, keys, args), len(releases))
	if err != nil {
		return nil, err
	}
	parts := make([]BatchReleased, len(releases))
	for i, reply := range replies {
		parts[i].Released, parts[i].Err = outcomeOf(reply)
	}
	return parts, nil
}
