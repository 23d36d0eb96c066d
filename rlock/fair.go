package rlock

import (
	"context"
	"time"

	"github.com/redis/rueidis"

	"holdfast/lua"
)

// NewFairLock returns the fair lock called name: a reentrant lock that goes to those who wait in
// the order in which they came, whichever client they use. It is Redisson's fair lock, and excludes
// the other locks under its name, which know no queue. For impossible names see [Client.NewLock].
//
// An attempt without wait takes the lock only if nobody is queued. A waiter that gives up leaves
// the queue at once, and a place never outlives the caller's wait or the deadline of its context,
// even if the process died. A waiter without either whose process died is passed over half a second
// after its turn has come, together with those of its process right behind it. One whose process
// hangs is passed over after ten seconds, and those of its client right behind it after less each.
// Waiters notice by a message, or at their next look, at most five seconds later. A waiter that has
// no connection when its turn comes, and none half a second later, goes to the end of the queue.
//
// If waits are shorter than the server's answers, this process sends only a few requests for a lock
// at a time whose callers may have left; further callers wait for those first.
//
// Prefer a wait or a deadline to cancelling the context: Redis is told when a wait or a deadline
// ends, and offers the lock to nobody whose time is over. If most callers are cancelled before a
// message can reach them and be answered, few get the lock.
//
// Each waiter listens on a channel of its own. A hand-over takes time in proportion to the length
// of the queue, because every place has a time, and Redisson relies on those being moved forward.
//
// By Redisson's rule for names, "x" and "{x}" share one queue although they are two locks: a waiter
// for one keeps everybody else from the other. Use one of the two; a client that acquires both logs
// a warning.
func (c *Client) NewFairLock(name string) *Lock {
	return c.newLock(name, fair{exclusive{client: c, name: name, of: "fair"}})
}

// fair is the kind of a lock with a queue in Redis. While it is held it is like a plain one.
type fair struct{ exclusive }

func (k fair) acquire(ctx context.Context, redis rueidis.CoreClient, r request) (reply, error) {
	k.client.useFair(k.name)
	q := lua.FairRequest{Owner: r.owner, Count: 1, Lease: r.lease, Waits: r.waits, Window: r.window}
	clock, sent := k.client.transport.Clock(k.name), time.Now()
	if r.waits && !r.until.IsZero() {
		q.Budget, q.Until = max(r.until.Sub(sent), time.Millisecond), clock.At(r.until)
	}
	holder, err := k.script().Acquire(ctx, redis, q)
	if holder != nil {
		clock.Hear(holder.Clock, sent, time.Now())
	}
	return reply{holder: holder}, err
}

func (k fair) release(ctx context.Context, owner string, count int, _ offer) (lua.Released, error) {
	return k.script().Release(ctx, k.client.redis, owner, count)
}

func (k fair) forceUnlock(ctx context.Context) (lua.Released, error) {
	return k.script().ForceUnlock(ctx, k.client.redis)
}

func (k fair) inspect(ctx context.Context) (lua.State, error) {
	return lua.InspectFair(ctx, k.client.redis, k.name)
}

// waiting has a queue for each waiter, because the order is made in Redis.
func (k fair) waiting(r request) waiting {
	channel := lua.FairChannel(k.name, r.owner)
	queue := queueName{k.of, channel}
	return waiting{queue: queue, topic: queue.topic(channel), ownQueue: true}
}

func (k fair) queued() bool { return true }

func (k fair) handsOver() bool { return false }

func (k fair) cleanUp(c *Client, batch []cleanup) bool {
	owners := make([]string, len(batch))
	for i, each := range batch {
		owners[i] = each.request.owner
	}
	released, err := k.script().Leave(context.Background(), c.redis, owners...)
	return c.cleaned(batch[0].lock, released, err)
}

func (k fair) batchSize() int { return lua.MostLeave }

func (k fair) plain() plain { return nil }

func (k fair) script() lua.Fair {
	t := k.client.transport
	sharded := t.Sharded()
	return lua.Fair{Lock: k.name, Sharded: sharded, Counted: sharded || !t.Clustered()}
}
