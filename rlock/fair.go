package rlock

import (
	"context"

	"github.com/redis/rueidis"

	"holdfast/lua"
)

// NewFairLock returns the fair lock called name: a reentrant lock that goes to those who wait in the order in which they
// came, whichever client they use. It is Redisson's fair lock, and excludes the other locks under its name, which know no
// queue. For impossible names see [Client.NewLock].
//
// An attempt without wait takes the lock only if nobody is queued. A waiter that gives up leaves the queue at once. One
// whose process died is passed over two seconds after its turn has come, together with others of that process next in the
// queue; one whose process hangs, ten seconds after, and others of its client next in the queue after less time each. It is
// noticed by those who wait behind, who look every five seconds.
//
// Each waiter listens on a channel of its own, and a hand-over costs time in proportion to the length of the queue: in it
// every place has a time, and Redisson counts on those being put forward.
func (c *Client) NewFairLock(name string) *Lock {
	return c.newLock(name, "fair", exclusive, fair{reentrant{wire: c.wire, name: name}})
}

// fair is the kind of a lock with a queue in Redis. What is done while it is held is the same as for the plain one.
type fair struct{ reentrant }

func (k fair) acquire(ctx context.Context, redis rueidis.CoreClient, b bid) (grant, error) {
	holder, err := k.script().Acquire(ctx, redis, b.owner, 1, b.lease, b.waits, b.window)
	return grant{holder: holder}, err
}

func (k fair) release(ctx context.Context, redis rueidis.CoreClient, owner string, count int, _ heir) (lua.Released, error) {
	return k.script().Release(ctx, redis, owner, count, 0)
}

func (k fair) withdraw(redis rueidis.CoreClient, b bid) (lua.Released, error) {
	return k.script().Release(context.Background(), redis, b.owner, 0, b.window)
}

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
