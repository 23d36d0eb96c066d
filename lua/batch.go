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

// BatchPart names one lock of a batch, and the owner that acquires or releases the lock.
type BatchPart struct {
	Lock  string
	Owner string
	// Count is the hold count of the owner after the command.
	Count int
	// Nested makes [AcquireBatch] add a nested hold, as [Reenter] does.
	Nested bool
	// Channel is the [wire.Channel] of the lock. Only [ReleaseBatch] needs the channel.
	Channel string
}

// AcquireBatch acquires several plain locks with a single command, all or none. After a success,
// the index is -1, and each lock lasts for at least lease. A nested part adds a hold for an owner
// that already holds the lock.
//
// If one lock cannot be acquired, no lock changes. AcquireBatch then returns the index of this part
// and the holder of the lock. The holder is nil if the part is nested and the owner has lost the
// lock. The parts must name different locks, and on a cluster all locks must be in the same slot.
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

// BatchReleased is the outcome of the release of one lock in a batch.
type BatchReleased struct {
	Released
	// Err is an [*rediserr.Error] if the server rejected the release of this lock. Released is then
	// zero.
	Err error
}

// ReleaseBatch releases several plain locks with a single command, and returns an outcome for each
// part, in the order of parts. Each release is like [Exclusive.Release] without a hand-over, and is
// announced on the selected kind of channels.
//
// If Redis rejects the release of one lock, the other releases still succeed. After an error of the
// whole command, for example if an ACL forbids a key, all outcomes are unknown. On a cluster, all
// locks must be in the same slot.
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

// Held names a lock and the owner that should hold the lock.
type Held struct {
	Lock string
	// Owner is the name of the owner, and for a write lock the [wire.WriteField] of the owner.
	Owner string
	// Read selects the read lock of a read-write lock.
	Read bool
}

// Renew renews several locks with a single command. Each lock that its owner still holds then lasts
// for at least lease. The result reports for each lock, in the order of renewals, whether its owner
// still holds the lock. All locks must be read locks, or none of them. On a cluster, all locks must
// be in the same slot. After an error, Renew may have renewed some of the locks.
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
