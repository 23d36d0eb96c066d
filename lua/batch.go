package lua

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"holdfast/internal/rediserr"
	"holdfast/internal/wire"
)

// BatchPart is the part of a batch that concerns one of its locks.
type BatchPart struct {
	Lock    string
	Channel string // the [wire.Channel] of the lock, for a release
	Owner   string
	Count   int  // the hold count to leave behind
	Nested  bool // the owner has the lock and adds a level, as by [Reenter]
}

// AcquireBatch takes several reentrant locks with the given lease, or adds levels to those that are
// nested: all or none, in one command. It returns -1 and no holder if it succeeds. Otherwise
// nothing has changed, and index is that of a lock that could not be taken: one that holder has or,
// if holder is nil, a nested one that its owner does not hold any more. The locks must differ, and
// on a cluster they must be in one slot.
func AcquireBatch(ctx context.Context, c rueidis.CoreClient, lease time.Duration, parts []BatchPart,
) (index int, holder *Holder, err error) {
	keys := make([]string, len(parts))
	args := append(make([]string, 0, 1+3*len(parts)), milliseconds(lease))
	for i, p := range parts {
		if slices.Contains(keys[:i], p.Lock) { // it would be found free for two owners
			return -1, nil, &rediserr.Error{Class: rediserr.ClassPermanent, Advice: "name each lock once",
				Message: "the lock " + strconv.Quote(p.Lock) + " is named twice"}
		}
		keys[i] = p.Lock
		args = append(args, p.Owner, strconv.Itoa(p.Count), flag[p.Nested])
	}
	rp := scripts["batch_acquire.lua"].Run(ctx, c, keys, args...)
	if rp.IsNil() {
		return -1, nil, nil
	}
	rp.List(2)
	i := rp.Integer()
	if i < 0 || i >= int64(len(parts)) {
		rp.Keep(rediserr.Unexpected(fmt.Errorf("lock %d of %d", i, len(parts))))
	}
	holder, err = acquired(rp.Part())
	if err != nil {
		return -1, nil, err
	}
	return int(i), holder, nil
}

// BatchReleased is the outcome of the release of one of several locks.
type BatchReleased struct {
	Released
	Err error // the server's refusal to release this one: an [*rediserr.Error]
}

// ReleaseBatch releases several locks in one command, each as [Exclusive.Release] does without a
// hand-over; channels says on which waiters listen. If the server refuses one, the others are
// released all the same. After an error of the whole command, which a user gets whose ACL forbids
// one of the keys, the outcome of each is unknown. On a cluster all locks must be in one slot.
func ReleaseBatch(ctx context.Context, c rueidis.CoreClient, channels wire.Channels,
	parts []BatchPart,
) ([]BatchReleased, error) {
	keys := make([]string, len(parts))
	args := make([]string, 0, 5*len(parts))
	for i, p := range parts {
		keys[i] = p.Lock
		args = append(args, p.Owner, strconv.Itoa(p.Count), p.Channel, wire.Unlocked, publish[channels])
	}
	rp := scripts["batch_release.lua"].Run(ctx, c, keys, args...)
	if rp.List(len(parts)); rp.Err != nil {
		return nil, rp.Err
	}
	outcomes := make([]BatchReleased, len(parts))
	for i := range outcomes {
		outcomes[i].Released, outcomes[i].Err = released(rp.Part())
	}
	return outcomes, nil
}

// Held names a lock and the owner that is believed to hold it.
type Held struct {
	Lock  string
	Owner string // for a write lock the [wire.WriteField] of the owner
	Read  bool   // a read lock
}

// Renew gives every lock that its owner still holds a TTL of at least lease, in one command. It
// returns for each lock whether its owner holds it. All of them are read locks, or none is. On a
// cluster all locks must be in one slot. An error concerns all, but some may have been renewed.
func Renew(ctx context.Context, c rueidis.CoreClient, lease time.Duration, renewals []Held,
) ([]bool, error) {
	file := "renew.lua"
	keys := make([]string, 0, 2*len(renewals))
	args := append(make([]string, 0, 1+len(renewals)), milliseconds(lease))
	for _, r := range renewals {
		keys = append(keys, r.Lock)
		if r.Read {
			file, keys = "read_renew.lua", append(keys, wire.HoldsKey(r.Lock, r.Owner)+":1")
		}
		args = append(args, r.Owner)
	}
	rp := scripts[file].Run(ctx, c, keys, args...)
	rp.List(len(renewals))
	held := make([]bool, len(renewals))
	for i := range held {
		held[i] = rp.Boolean()
	}
	if rp.Err != nil {
		held = nil
	}
	return held, rp.Err
}
