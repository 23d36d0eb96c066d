package lua

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

var (
	togetherAcquire = load("together_acquire.lua")
	togetherRelease = load("together_release.lua")
)

// Taking is what an owner wants of one of several locks.
type Taking struct {
	Lock  string
	Owner string
	Count int // to leave behind
	// Nested tells that the owner holds the lock already and adds a level, as with [Reenter]; else it is as with [Acquire].
	Nested bool
}

// AcquireTogether takes several reentrant locks with the given lease, all or none, in one command. It returns -1 and no
// holder when all are taken. Else nothing has changed, and index is that of one lock that is in the way: of a nested one
// that its owner does not hold any more when holder is nil, else of one that holder has. The locks must differ, and on a
// cluster they must be in one slot.
func AcquireTogether(ctx context.Context, c rueidis.CoreClient, lease time.Duration, takings []Taking) (
	index int, holder *Holder, err error,
) {
	keys := make([]string, len(takings))
	args := make([]string, 1, 3*len(takings)+1)
	args[0] = milliseconds(lease)
	for i, t := range takings {
		keys[i] = t.Lock
		args = append(args, t.Owner, strconv.Itoa(t.Count), flag(t.Nested))
	}
	if err := differ(keys); err != nil {
		return -1, nil, err
	}
	return oneInTheWay(togetherAcquire.run(ctx, c, keys, args), len(takings))
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
func oneInTheWay(reply rueidis.RedisResult, takings int) (index int, holder *Holder, err error) {
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
	if i < 0 || i >= int64(takings) {
		return -1, nil, unexpected(fmt.Sprintf("lock %d of %d", i, takings))
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

// Leaving says what an owner leaves behind of one of several locks.
type Leaving struct {
	Lock         string
	Owner        string
	Count        int
	Announcement Announcement
}

// PartReleased is the outcome of the release of one of several locks.
type PartReleased struct {
	Released
	Err error // the server's refusal to release this one: an [*Error]
}

// ReleaseTogether is [Release] for each of several locks, in one command. One that the server refuses does not keep the
// others: its Err says why. An error of the whole command tells nothing about any of them; that is also the one of a user
// whose ACL forbids just one of the keys. On a cluster all locks must be in one slot.
func ReleaseTogether(ctx context.Context, c rueidis.CoreClient, leavings []Leaving) ([]PartReleased, error) {
	keys := make([]string, len(leavings))
	args := make([]string, 0, 5*len(leavings))
	for i, l := range leavings {
		keys[i] = l.Lock
		args = append(args, l.Owner, strconv.Itoa(l.Count), l.Announcement.Channel, l.Announcement.Message, l.Announcement.verb())
	}
	replies, err := list(togetherRelease.run(ctx, c, keys, args), len(leavings))
	if err != nil {
		return nil, err
	}
	parts := make([]PartReleased, len(leavings))
	for i, reply := range replies {
		parts[i].Released, parts[i].Err = outcomeOf(reply)
	}
	return parts, nil
}
