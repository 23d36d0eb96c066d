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

// quorumAcquire is looked up once.
var quorumAcquire = scripts["quorum_acquire.lua"]

// Delay says how long a node of a RedLock does not vote after it may have forgotten locks. A
// RedLock consists of plain locks on several servers, its nodes, and an owner needs the votes of
// most nodes. A node that voted at once could vote for a second owner while the first owner still
// trusts the lease. With the zero Delay, a node is never delayed.
type Delay struct {
	// For is the longest lease of all clients. A node does not vote until For and another second
	// have passed since the node started. The second is necessary because Redis reports its uptime in
	// whole seconds.
	For time.Duration
	// Epoch also delays a node that had no data. The epoch of a node is the time at which
	// [Ballot.Cast] found no [wire.EpochKey] on the node, and stored the time in this key. The node
	// was then new, or had lost its data, for example by FLUSHALL. The node does not vote until For
	// has passed since the epoch.
	Epoch bool
	// Durable says that the node forgets nothing in a restart, so only the epoch delays the node.
	Durable bool
}

// Vote is the reply of a node of a RedLock. Exactly one of Granted, Holder and Delayed is set.
type Vote struct {
	// Granted reports whether the owner holds the lock on this node now.
	Granted bool
	// Already reports, if Granted is set, that the owner held the lock before the command.
	Already bool
	// Holder is the other owner that holds the lock, or nil.
	Holder *Holder
	// Delayed is how much longer the node does not vote, or 0.
	Delayed time.Duration
	// Emptied reports that the node is delayed because of its epoch. Otherwise the node is delayed
	// because of a restart.
	Emptied bool
}

// Ballot is the request for a RedLock. All its nodes get the same request.
type Ballot struct {
	args  []string
	epoch bool
}

// NewBallot returns the request of an owner for a lease. The delay says which nodes do not vote.
func NewBallot(owner string, lease time.Duration, d Delay) Ballot {
	delay := d.For.Milliseconds()
	if d.For%time.Millisecond > 0 {
		delay++ // a delay may be longer than asked for, but not shorter
	}
	return Ballot{epoch: d.Epoch, args: []string{owner, milliseconds(lease),
		strconv.FormatInt(max(0, delay), 10), flag[d.Durable]}}
}

// Cast acquires a plain lock for the owner of the ballot on one node of a RedLock. If the vote is
// granted, the hold count is 1, and the lock lasts for at least the lease.
//
// Cast does not change the lock if another owner holds it, or if the node does not vote yet
// according to the [Delay]. Such a node does not even vote for an owner that already holds the lock
// there, because a restarted node may have restored a lock that was released in the meantime.
//
// With Delay.Epoch, the node must not be part of a cluster, where the epoch and the lock would be
// in different slots.
func (b Ballot) Cast(ctx context.Context, c rueidis.CoreClient, lock string) (Vote, error) {
	keys := []string{lock}
	if b.epoch {
		keys = append(keys, wire.EpochKey)
	}
	rp := quorumAcquire.Run(ctx, c, keys, b.args...)
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
