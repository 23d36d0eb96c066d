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

// BatchPart is a lock in a batch.
type BatchPart struct {
	Lock    string
	Channel string // the [wire.Channel] of the lock, for a release
	Owner   string
	Count   int  // the hold count to leave behind
	Nested  bool // the owner has the lock and adds a level, as by [Reenter]
}

// AcquireBatch acquires several reentrant locks with a single command, all or none. For a nested
// part, AcquireBatch adds a hold to a lock that the owner already has. After a success, index is
// -1. Otherwise nothing has changed, and index is the position of the first lock that could not be
// acquired. The holder is the owner of that lock. It is nil if the part is nested and its owner has
// lost the lock. The locks must differ, and on a cluster they must be in the same slot.
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

// BatchReleased is the outcome of a release in a batch.
type BatchReleased struct {
	Released
	Err error // the server's refusal to release this one: an [*rediserr.Error]
}

// ReleaseBatch releases several locks with a single command, as [Exclusive.Release] does without a
// hand-over. Waiters listen on the channels that channels selects. If Redis rejects the release of
// one lock, the other releases still succeed. After an error of the whole command, for example if
// an ACL forbids a key, all outcomes are unknown. On a cluster, all locks must be in the same slot.
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

// Held is a lock and its expected owner.
type Held struct {
	Lock  string
	Owner string // for a write lock the [wire.WriteField] of the owner
	Read  bool   // a read lock
}

// Renew renews several locks with a single command. Each lock that its owner still holds gets a TTL
// of at least lease. The results say which locks their owners still hold. Do not mix read locks and
// others. On a cluster, all locks must be in the same slot. After an error, some locks may have
// been renewed.
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
