package rlock

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"holdfast/internal/owner"
	"holdfast/internal/transport"
	"holdfast/internal/wire"
	"holdfast/lua"
)

// NewFairLock returns the fair lock with the given name, a reentrant lock that serves waiters in
// the order of arrival, across all clients. The lock is compatible with the fair lock of Redisson,
// and excludes other locks with its name, which ignore the queue. For impossible names, see
// [Client.NewLock].
//
// An attempt without a wait acquires the lock only if the queue is empty. A waiter that gives up
// leaves the queue at once. A queue entry never outlives the wait of the caller or the deadline of
// its context, even if the process died.
//
// If the process of a waiter without a limit has died, Redis skips the waiter half a second after
// it has become the first in the queue, along with the waiters of the same process right behind it.
// If the process hangs, or has died on a cluster with classic channels, skipping takes ten seconds,
// and less for each waiter of the same client right behind. Other waiters learn of the skip from a
// message, or when they ask again, up to five seconds later. A waiter that has no connection when
// it becomes the first, nor half a second later, moves to the end of the queue.
//
// If waits are shorter than the response time of the server, many requests may still be under way
// after their callers have left. The client limits their number for each lock, and further callers
// wait until some of these requests end.
//
// Prefer a wait or a deadline to canceling the context. Redis knows when a wait or deadline ends,
// and does not offer the lock afterwards. If most callers cancel before a message can reach them
// and they can reply, few of them get the lock.
//
// Each waiter subscribes to its own channel. A hand-over takes time in proportion to the length of
// the queue, because Redisson expects every entry to get a new timestamp.
//
// By the naming rules of Redisson, the locks "x" and "{x}" share a queue although they are two
// locks, so a waiter for one of them keeps all other callers from the other. Use only one of the
// two names. A client that acquires both logs a warning.
func (c *Client) NewFairLock(name string) *Lock { return c.fairOf(c.options.mapped(name)) }

// fairOf returns the fair lock with a name in Redis.
func (c *Client) fairOf(name string) *Lock { return c.newFair(name, "fair", nil) }

// newFair returns a fair lock of the family. If an owner may not acquire the lock again, reentry is
// the error, and otherwise nil.
func (c *Client) newFair(name, family string, reentry error) *Lock {
	return c.newLock(name, traits{family: family, queueKey: wire.QueueKey(name),
		wakes: owner.Fair, cleanups: lua.MaxFairReleases, inspect: lua.InspectFair, reentry: reentry},
		fair{exclusive{client: c, name: name}})
}

// fair is the kind of a lock with a queue in Redis. A held fair lock is like a plain lock.
type fair struct{ exclusive }

func (k fair) acquire(ctx context.Context, redis rueidis.CoreClient, r request) (reply, error) {
	// Only log a warning and do not reject the lock, because the names may be shared with Redisson.
	if k.client.fairNames.use(k.name) {
		k.client.warn("holdfast: two fair locks share one queue, because their names differ only "+
			"in braces, so a waiter for one lock blocks the other; use only one of the two names",
			"lock", k.name, "queue", wire.QueueKey(k.name))
	}
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
	return k.script().Release(ctx, k.client.redis, count, owner)
}

func (k fair) forceUnlock(ctx context.Context) (lua.Released, error) {
	return k.script().ForceUnlock(ctx, k.client.redis)
}

// waiting returns a separate local queue for each waiter, because Redis keeps the order.
func (k fair) waiting(owner string, _ bool) *waiting {
	channel := wire.FairChannel(k.name, owner)
	how := queueName{"fair", channel}.waiting(channel)
	how.ownQueue, how.queued = true, true
	return how
}

func (k fair) cleanUp(batch []cleanup) (lua.Released, error) {
	owners := make([]string, len(batch))
	for i, each := range batch {
		owners[i] = each.request.owner
	}
	return transport.Undo(k.client.calls, func(ctx context.Context) (lua.Released, error) {
		return k.script().Release(ctx, k.client.redis, 0, owners...)
	})
}

func (k fair) script() lua.Fair {
	to := k.client.transport.HandOvers()
	return lua.Fair{Lock: k.name, Channels: to.Channels, Counted: to.Counted}
}

// mostNames bounds the number of remembered names. When the number is exceeded, all are forgotten.
const mostNames = 1024

// namesakes finds fair locks that share a queue.
type namesakes struct {
	mu   sync.Mutex
	used map[string]bool // guarded by mu
}

// use records a name, and reports whether the name completes a pair. use reports each pair once,
// until the names are forgotten.
func (ns *namesakes) use(name string) (shared bool) {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	if ns.used[name] {
		return false
	}
	other := "{" + name + "}"
	if strings.HasPrefix(name, "{") {
		other = strings.TrimSuffix(name[1:], "}")
	}
	shared = ns.used[other] && wire.QueueKey(other) == wire.QueueKey(name)
	if ns.used == nil || len(ns.used) >= mostNames {
		ns.used = make(map[string]bool)
	}
	ns.used[name] = true
	return shared
}
