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
// An attempt without wait takes the lock only if nobody is queued. A waiter that gives up leaves the queue at once, and a place
// never outlives the caller's wait or the deadline of its context, even if the process died. A waiter without either whose
// process died is passed over half a second after its turn has come, together with those of its process right behind it. One
// whose process hangs is passed over after ten seconds, and those of its client right behind it after less each. Waiters notice
// by a message, or at their next look, at most five seconds later. A waiter that has no connection when its turn comes, and none
// half a second later, goes to the end of the queue.
//
// If waits are shorter than the server's answers, this process sends only a few requests for a lock at a time whose callers may
// have left; further callers wait for those first.
//
// Prefer a wait or a deadline to cancelling the context: Redis is told when a wait or a deadline ends, and offers the lock to
// nobody whose time is over. If most callers are cancelled before a message can reach them and be answered, few get the lock.
//
// Each waiter listens on a channel of its own. A hand-over takes time in proportion to the length of the queue, because every
// place has a time, and Redisson relies on those being moved forward.
//
// By Redisson's rule for names, "x" and "{x}" share one queue although they are two locks: a waiter for one keeps everybody
// else from the other. Use one of the two; a client that acquires both logs a warning.
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

func (k fair) withdraw(redis rueidis.CoreClient, bids ...bid) (lua.Released, error) {
	owners := make([]string, len(bids))
	for i, b := range bids {
		owners[i] = b.owner
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
