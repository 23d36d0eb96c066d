package lua

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"holdfast/internal/eval"
	"holdfast/internal/wire"
)

// Fair sends the commands of a fair lock, whose waiters get the lock in the order of arrival,
// across all clients. All clients of a lock must use the same settings.
//
// # The queue
//
// The queue is a list of owners in Redis, and the first of them is the head. Only the head can
// acquire a free lock. If the queue is empty, any owner can. An owner enters at the end of the
// queue when a [FairRequest] with Waits does not get the lock. Further requests do not change its
// place.
//
// The turn of the head is the time in which the head may acquire the free lock. The turn begins
// when a script finds the lock free, usually the script of a release. The script notifies the head
// by a message on a channel for this owner alone, and the client of the head then calls Acquire
// again. A turn lasts 10 s, or half a second if no client listens on the channel, because such a
// head is usually dead.
//
// If the head lets its turn pass, the next owner becomes the head. A head that listens but lets its
// turn pass probably belongs to a process that hangs. So if the next owners belong to the same
// client, the first has a turn of half a second, and each further owner has a quarter of the turn
// before, but at least 100 ms. If nobody listened for the head, Redis also removes the next owners
// without a listener, because they had the same time to come.
//
// If the wait of a caller is limited, the request has a budget, the time until the caller gives up.
// The window is how long a silent head without a budget keeps its place after the lock should have
// become free. When an owner becomes the head, its time of removal is about the end of the holder's
// lease plus the window. Each further request of the head moves the time of removal to the end of
// the lease plus the window plus 10 s, but never to an earlier time. If the lock is free, the
// request takes the place of the end of the lease.
//
// An owner leaves the queue when the first of these things happens:
//
//   - The owner acquires the lock.
//   - The caller gives up, and its client removes the owner with [Fair.Release].
//   - The budget of the owner ends, at any place in the queue.
//   - The owner is the head and lets its turn pass.
//   - The owner is the head without a budget, and has stopped asking for so long that its window
//     has passed. An owner that asks every [LongestSleep] stays, if its window is at least 10 s.
//
// Redis has no timer for the queue. Instead, each Acquire, Release and ForceUnlock of any client
// first removes the owners whose time has ended. A removed owner that asks again enters at the end.
//
// In this example, B waits for 5 s, and C without a limit:
//
//	A acquires the lock     queue: (empty)
//	B asks, budget 5 s      queue: B     (reply: A holds the lock)
//	C asks, window 5 min    queue: B C   (reply: A holds the lock)
//	A releases the lock     queue: B C   (the turn of B begins, message to B)
//	B asks again            queue: C     (B is the holder)
//	B releases the lock     queue: C     (the turn of C begins, message to C)
type Fair struct {
	// Lock is the name of the lock.
	Lock string
	// Channels selects the kind of channels on which waiters listen.
	Channels wire.Channels
	// Set Counted if PUBLISH returns the number of all listeners, as on a single server or with
	// sharded channels. A node of a cluster counts only its own listeners of a classic channel.
	// Without Counted, Redis cannot find out whether a client listens, so a turn of half a second
	// lasts 10 s instead.
	Counted bool
}

const (
	// A turn lasts this long. The head is notified at once, asks every LongestSleep by itself, and
	// may have to wait for a connection. A head without a listener has just queued, is reconnecting,
	// or is dead.
	headTimeout = 10 * time.Second       // with a listener
	deafTimeout = 500 * time.Millisecond // without
	// LongestSleep is the longest time for which a waiter may sleep before it asks again, for a lock
	// of any kind. A waiter for a fair lock that asks this often keeps its place in the queue.
	LongestSleep = 5 * time.Second
	// MaxFairReleases is the largest number of owners for one call of [Fair.Release], because Lua
	// limits the number of arguments.
	MaxFairReleases = 1000
)

// FairRequest is a request of an owner for a fair lock. See [Fair] for the queue.
type FairRequest struct {
	Owner string
	// Count is the hold count of the owner after it has acquired the lock.
	Count int
	// Lease is how long the lock lasts at least, once the owner has acquired it.
	Lease time.Duration
	// Waits makes the owner enter the queue if it does not get the lock.
	Waits bool
	// Window is how long a silent head keeps its place, see [Fair]. With a Budget, set Window in every
	// request to the whole time that the caller waits, counted from its first request. The scripts of
	// this package then ignore Window, but clients of Redisson that edit the same queue do not.
	// Without a Budget, set Window to at least 10 s, so that an owner that asks every [LongestSleep]
	// keeps its place.
	Window time.Duration
	// Budget is how much longer the owner waits. At the end, Redis removes the owner from the queue,
	// even if its process has died. 0 means that the owner waits without a limit.
	Budget time.Duration
	// Until is the end of the budget by the clock of the server, or zero if that is unknown. You can
	// calculate it from the Clock of an earlier [Holder]. The budget then ends at Until, even if the
	// request was under way for long. If the request arrives later than that, its caller has left, so
	// the owner neither gets the lock nor enters the queue, unless the owner is the holder already.
	// If Until is zero, the budget counts from the arrival of the request. Without a budget, Until
	// has no effect.
	Until time.Time
}

// run sends a script with the keys and arguments that all scripts of a fair lock begin with.
func (f Fair) run(ctx context.Context, c rueidis.CoreClient, file string, more ...string,
) eval.Reply {
	deaf := deafTimeout
	if !f.Counted {
		deaf = headTimeout
	}
	keys := []string{f.Lock, wire.QueueKey(f.Lock), wire.ScoresKey(f.Lock), wire.TurnKey(f.Lock),
		wire.BudgetsKey(f.Lock)}
	args := []string{wire.Channel(f.Lock), publish[f.Channels], milliseconds(headTimeout),
		milliseconds(deaf), milliseconds(LongestSleep)}
	return scripts[file].Run(ctx, c, keys, append(args, more...)...)
}

// Acquire acquires the lock for the owner of the request, and returns nil on success. Acquire
// succeeds if the lock is free and the owner is the head or the queue is empty, and also if the
// owner is the holder already. The owner then leaves the queue.
//
// Otherwise Acquire returns the holder or, if the lock is free, the head. If the request waits, the
// owner is in the queue afterwards, at its old place if it was queued before.
func (f Fair) Acquire(ctx context.Context, c rueidis.CoreClient, r FairRequest) (*Holder, error) {
	budget, until := int64(0), int64(0)
	if r.Budget > 0 {
		budget, until = max(1, r.Budget.Milliseconds()), max(0, r.Until.UnixMilli())
	}
	rp := f.run(ctx, c, "fair_acquire.lua", r.Owner, strconv.Itoa(r.Count), milliseconds(r.Lease),
		flag[r.Waits], milliseconds(r.Window), strconv.FormatInt(budget, 10),
		strconv.FormatInt(until, 10))
	holder, clock := refusal(&rp, 4)
	if holder != nil {
		holder.Clock = time.UnixMilli(clock)
	}
	return holder, rp.Err
}

// Release sets the hold count of an owner to count. If count is above 0, the owner keeps the lock,
// and you must pass a single owner. If count is 0, each owner loses the lock and leaves the queue,
// so Release also serves waiters that give up. You can then pass up to MaxFairReleases owners.
//
// If the lock becomes free, or is free and has a new head, the turn of the head begins, and Release
// notifies the head. [Released].Held reports whether one of the owners held the lock.
func (f Fair) Release(ctx context.Context, c rueidis.CoreClient, count int, owners ...string,
) (Released, error) {
	args := append([]string{strconv.Itoa(count)}, owners...)
	return released(f.run(ctx, c, "fair_release.lua", args...))
}

// ForceUnlock releases all holds of the holder, whoever it is. The queue stays as it is, the turn
// of the head begins, and ForceUnlock notifies the head. If the lock was free, [Released].Held is
// false.
func (f Fair) ForceUnlock(ctx context.Context, c rueidis.CoreClient) (Released, error) {
	return released(f.run(ctx, c, "fair_force_unlock.lua"))
}
