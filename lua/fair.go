package lua

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"holdfast/internal/eval"
	"holdfast/internal/wire"
)

// Fair sends the commands of a fair lock. Clients that share the lock use the same settings.
type Fair struct {
	Lock     string        // its name
	Channels wire.Channels // on which waiters listen
	// Counted reports whether PUBLISH returns the number of all listeners, as on a single node or
	// with sharded channels. On a cluster it counts only those of one node.
	Counted bool
}

const (
	// The head of the queue is dropped if it does not take a free lock for this long. It is told at
	// once, asks every MaxNap by itself, and may have to wait for a connection. A head without a
	// listener has just queued, is reconnecting, or is dead.
	headTimeout = 10 * time.Second       // with a listener
	deafTimeout = 500 * time.Millisecond // without
	// MaxNap is the longest time that a waiter may sleep before it must ask again to stay in the
	// queue. It is half of the time for which [Fair.Acquire] keeps an owner queued after a request.
	MaxNap = 5 * time.Second
	// MaxFairReleases is the largest number of owners for [Fair.Release]: Lua limits the number of
	// values that are passed at once.
	MaxFairReleases = 1000
)

// FairRequest is the request for a fair lock.
type FairRequest struct {
	Owner  string
	Count  int // the hold count to leave behind
	Lease  time.Duration
	Waits  bool          // the owner is queued if it does not get the lock
	Window time.Duration // for how long at least it stays queued after a request without a Budget
	Budget time.Duration // how much longer it waits; it leaves the queue then. 0 means no limit
	// Until is when the budget ends by the server's clock, as in [Holder].Clock; zero if unknown. A
	// request that is executed later is refused and leaves nothing behind. Ignored without Budget.
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
		milliseconds(deaf), milliseconds(MaxNap)}
	return scripts[file].Run(ctx, c, keys, append(args, more...)...)
}

// Acquire takes the lock for an owner, if it is free and no other owner is ahead in the queue. If
// not, an owner that waits is put at the end, where it stays until its budget is over.
// Without a limit it stays for at least its window and, as long as it asks every [MaxNap], for
// ever. Acquire returns who holds the lock or comes first; nil means that the owner has it.
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

// Release leaves an owner with the given hold count. With count 0 it loses the lock, whatever count
// it had, and leaves the queue; the next in the queue is told. One command may release up to
// [MaxFairReleases] owners with count 0. Held then reports whether any of them held the lock.
func (f Fair) Release(ctx context.Context, c rueidis.CoreClient, count int, owners ...string,
) (Released, error) {
	args := append([]string{strconv.Itoa(count)}, owners...)
	return released(f.run(ctx, c, "fair_release.lua", args...))
}

// ForceUnlock frees the lock regardless of its holder, and tells the head of the queue.
func (f Fair) ForceUnlock(ctx context.Context, c rueidis.CoreClient) (Released, error) {
	return released(f.run(ctx, c, "fair_force_unlock.lua"))
}
