package rlock

import (
	"context"
	"time"

	"github.com/redis/rueidis"

	"holdfast/lua"
)

// NewFairLock returns the fair lock called name: a reentrant lock that goes to those who wait in the order in which they
// came, whichever client they use. It is Redisson's fair lock, and excludes the other locks under its name, which know no
// queue. For impossible names see [Client.NewLock].
//
// An attempt without wait takes the lock only if nobody is queued. A waiter that gives up leaves the queue at once, and the
// place of one whose wait or context has an end is gone then in any case. One whose process died is passed over half a second
// after its turn has come, together with others of that process next in the queue; one whose process hangs, ten seconds after,
// and others of its client next in the queue after less time each, as soon as those who wait behind notice, who look every five
// seconds. A waiter that has lost its connection when its turn comes, and has no other after half a second, goes to the end.
//
// Callers whose waits are shorter than the server takes to answer wait for each other in this process: no more than a few
// requests of theirs are under way that nobody waits for any more.
//
// Each waiter listens on a channel of its own, and a hand-over costs time in proportion to the length of the queue: in it
// every place has a time, and Redisson counts on those being put forward.
//
// Redisson's names give "x" and "{x}" one queue, though they are two locks: who waits for one keeps the other from everybody
// else. Use one of the two; a client that is asked for both warns of it in the log.
func (c *Client) NewFairLock(name string) *Lock {
	return c.newLock(name, "fair", exclusive, fair{reentrant{wire: c.wire, name: name}})
}

// fair is the kind of a lock with a queue in Redis. What is done while it is held is the same as for the plain one.
type fair struct{ reentrant }

func (k fair) acquire(ctx context.Context, redis rueidis.CoreClient, b bid) (grant, error) {
	k.wire.useFair(k.name)
	r := lua.FairRequest{Owner: b.owner, Count: 1, Lease: b.lease, Waits: b.waits, Window: b.window}
	clock, sent := k.wire.clockOf(k.name), time.Now()
	if b.waits && !b.until.IsZero() {
		r.Budget, r.Until = max(b.until.Sub(sent), time.Millisecond), clock.at(b.until)
	}
	holder, err := k.script().Acquire(ctx, redis, r)
	if holder != nil {
		clock.hear(holder.Clock, sent, time.Now())
	}
	return grant{holder: holder}, err
}

func (k fair) release(ctx context.Context, redis rueidis.CoreClient, owner string, count int, _ heir) (lua.Released, error) {
	return k.script().Release(ctx, redis, owner, count)
}

func (k fair) withdraw(redis rueidis.CoreClient, b bid, others ...bid) (lua.Released, error) {
	owners := []string{b.owner}
	for _, other := range others {
		owners = append(owners, other.owner)
	}
	return k.script().Leave(context.Background(), redis, owners...)
}

func (k fair) batch() int { return lua.MostLeave }

func (k fair) forceUnlock(redis rueidis.CoreClient) (lua.Released, error) {
	return k.script().ForceUnlock(context.Background(), redis)
}

func (k fair) inspect(redis rueidis.CoreClient) (lua.State, error) {
	return lua.InspectFair(context.Background(), redis, k.name)
}

func (k fair) queues() bool { return true }

func (k fair) passes() bool { return false }

// call is the waiter's own: there is no local queue, because the order is made in Redis.
func (k fair) call(owner string) call {
	channel := lua.FairChannel(k.name, owner)
	return call{line: lineName{"fair", channel}, channel: channel}
}

func (k fair) script() lua.Fair {
	sharded := k.wire.isSharded()
	return lua.Fair{Lock: k.name, Sharded: sharded, Counted: sharded || k.wire.cluster == nil}
}
