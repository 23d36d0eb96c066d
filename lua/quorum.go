package lua

import (
	"context"
	"time"

	"github.com/redis/rueidis"
)

var quorumAcquire = load("quorum_acquire.lua")

// EpochKey is the key that says since when a server of a RedLock has its data. There is one per
// server; it never expires.
const EpochKey = "holdfast_redlock_epoch"

// Delay is for how long a node that may have forgotten locks is not counted: the longest lease that
// it may have known. The zero Delay is none.
type Delay struct {
	// For counts from the node's start. It is measured with the clock of the node.
	For time.Duration
	// Epoch has it also count from the moment when a node without [EpochKey] is first asked: one
	// whose data was dropped, as by FLUSHALL, and any new one.
	Epoch bool
	// Durable tells that a restart forgets nothing, so that only the epoch counts.
	Durable bool
}

// Vote is the answer of one node of a RedLock. Just one of Granted, Holder and Delayed is set.
type Vote struct {
	Granted bool
	Again   bool          // granted, and the owner had it before
	Holder  *Holder       // somebody else has the lock
	Delayed time.Duration // the node is not counted yet, for so long
	Emptied bool          // Delayed is for the epoch: nobody knows what the node had before
}

// AcquireVote takes a reentrant lock with count 1 on one node of a RedLock, unless somebody has it
// or the node is not counted yet. The latter holds for an owner that has the lock, too: a node may
// have brought back a hold that was released since. A lock that was not granted has not changed.
// With [Delay.Epoch] the node must not be one of a cluster, where the epoch would be in another
// slot than the lock.
func AcquireVote(
	ctx context.Context, c rueidis.CoreClient, lock, owner string, lease time.Duration, d Delay,
) (Vote, error) {
	keys := []string{lock}
	if d.Epoch {
		keys = append(keys, EpochKey)
	}
	// A part of a millisecond counts as a whole one: a delay may be longer than asked for, and not
	// shorter.
	delay := max(0, d.For)
	if rest := delay % time.Millisecond; rest > 0 {
		delay += min(time.Millisecond, 1<<63-1-delay)
	}
	return voted(
		quorumAcquire.run(
			ctx,
			c,
			keys,
			[]string{owner, milliseconds(lease), milliseconds(delay), flag(d.Durable)},
		),
	)
}

func voted(reply rueidis.RedisResult) (Vote, error) {
	if rueidis.IsRedisNil(reply.Error()) {
		return Vote{Granted: true}, nil
	}
	if n, err := reply.ToInt64(); err == nil && n == 1 {
		return Vote{Granted: true, Again: true}, nil
	}
	values, err := reply.ToArray()
	if err != nil {
		return Vote{}, Classify(err)
	}
	if len(values) != 2 {
		holder, err := holderOf(values)
		return Vote{Holder: holder}, err
	}
	wait, err := integer(values[0])
	if err != nil {
		return Vote{}, err
	}
	if wait <= 0 {
		return Vote{}, unexpected("a delay that is over")
	}
	emptied, err := boolean(values[1])
	if err != nil {
		return Vote{}, err
	}
	return Vote{Delayed: ttl(wait), Emptied: emptied}, nil
}
