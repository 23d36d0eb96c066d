package lua

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"holdfast/internal/rediserr"
	"holdfast/internal/wire"
)

// Delay says how long a node is ignored because it may have forgotten locks. With the zero Delay,
// no node is ignored.
type Delay struct {
	// For is the longest lease that the node may have known. For counts from the start of the node, by
	// its clock.
	For time.Duration
	// Epoch makes For also count from the first question to a node without [wire.EpochKey]. Such a
	// node is new, or lost its data, for example by FLUSHALL.
	Epoch   bool
	Durable bool // a restart forgets nothing, so that only the epoch counts
}

// Vote is the reply of a node of a RedLock. Exactly one of Granted, Holder and Delayed is set.
type Vote struct {
	Granted bool
	Already bool          // granted, and the owner had the lock before
	Holder  *Holder       // another owner has the lock
	Delayed time.Duration // how long the node is not counted yet
	Emptied bool          // Delayed is for the epoch: what the node had before is unknown
}

// AcquireVote acquires a reentrant lock with count 1 on a node of a RedLock, unless another owner
// has the lock or the node does not count yet. Such a node rejects even the owner of the lock,
// because the node may have restored a released lock. AcquireVote changes the lock only if it
// returns Granted. With Delay.Epoch, the node must not be part of a cluster, where the epoch would
// be in another slot than the lock.
func AcquireVote(ctx context.Context, c rueidis.CoreClient, lock, owner string,
	lease time.Duration, d Delay,
) (Vote, error) {
	keys := []string{lock}
	if d.Epoch {
		keys = append(keys, wire.EpochKey)
	}
	delay := d.For.Milliseconds()
	if d.For%time.Millisecond > 0 {
		delay++ // a delay may be longer than asked for, but not shorter
	}
	rp := scripts["quorum_acquire.lua"].Run(ctx, c, keys, owner, milliseconds(lease),
		strconv.FormatInt(max(0, delay), 10), flag[d.Durable])
	var v Vote
	size := rp.Size()
	switch {
	case rp.IsNil():
		v.Granted = true
	case size == 3:
		v.Holder, _ = refusal(&rp, 3)
	case size > 0:
		rp.List(2)
		v.Delayed, v.Emptied = wire.TTL(rp.Integer()), rp.Boolean()
		if v.Delayed <= 0 {
			rp.Keep(rediserr.Unexpected(errors.New("a delay that is over")))
		}
	default:
		v.Granted, v.Already = true, true
		if n := rp.Integer(); n != 1 {
			rp.Keep(rediserr.Unexpected(fmt.Errorf("%d instead of 1", n)))
		}
	}
	if rp.Err != nil {
		v = Vote{}
	}
	return v, rp.Err
}
