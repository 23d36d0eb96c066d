package lua

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"holdfast/internal/eval"
	"holdfast/internal/wire"
)

// Fair sends the commands of a fair lock. All clients of a lock must use the same settings.
type Fair struct {
	Lock     string        // its name
	Channels wire.Channels // on which waiters listen
	// Counted reports whether PUBLISH returns the number of all listeners, as on a single node or with
	// sharded channels. A cluster node only counts its own listeners.
	Counted bool
}

const (
	// The head of the queue is dropped if it does not take a free lock for this long. It is told at
	// once, asks every LongestSleep by itself, and may have to wait for a connection. A head without a
	// listener has just queued, is reconnecting, or is dead.
	headTimeout = 10 * time.Second       // with a listener
	deafTimeout = 500 * time.Millisecond // without
	// LongestSleep is the longest time for a waiter to sleep before it must ask again to stay in the
	// queue. [Fair.Acquire] keeps an owner in the queue for twice as long after a request.
	LongestSleep = 5 * time.Second
	// MaxFairReleases is the largest number of owners for [Fair.Release], because Lua limits the
	// number of arguments.
	MaxFairReleases = 1000
)

// FairRequest is a request for a fair lock.
type FairRequest struct {
	Owner  string
	Count  int // the hold count to leave behind
	Lease  time.Duration
	Waits  bool          // the owner is queued if it does not get the lock
	Window time.Duration // how long it stays queued at least after a request without a Budget
	Budget time.Duration // how much longer it waits; it leaves the queue then. 0 means no limit
	// Until is the end of the budget by the clock of the server, as in [Holder].Clock, or zero if
	// unknown. If the request arrives later, the server rejects it and changes nothing. Until is
	// ignored without a Budget.
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

// Acquire acquires the lock for an owner, if the lock is free and no other owner is ahead in the
// queue. Otherwise a waiting owner goes to the end of the queue, and stays there until its budget
// ends. Without a limit, the owner stays for at least its window, and as long as it asks again
// within each LongestSleep. Acquire returns the holder or the first owner in the queue, and nil on
// success.
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

// Release sets the hold count of an owner to count. If count is 0, the owner loses the lock and
// leaves the queue, and Release notifies the next owner in the queue. In that case you can pass up
// to MaxFairReleases owners, and Held reports whether any of them held the lock.
func (f Fair) Release(ctx context.Context, c rueidis.CoreClient, count int, owners ...string,
) (Released, error) {
	args := append([]string{strconv.Itoa(count)}, owners...)
	return released(f.run(ctx, c, "fair_release.lua", args...))
}

// ForceUnlock releases the lock of any holder, and notifies the head of the queue.
func (f Fair) ForceUnlock(ctx context.Context, c rueidis.CoreClient) (Released, error) {
	return released(f.run(ctx, c, "fair_force_unlock.lua"))
}
