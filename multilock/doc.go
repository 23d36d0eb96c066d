// Package multilock acquires several locks together: all of them or none.
//
//	both := multilock.New(client.NewLock("account:17"), client.NewLock("account:42"))
//	hold, err := both.TryLock(ctx, 3*time.Second, 30*time.Second)
//	if err != nil {
//		return err // matches rlock.ErrNotAcquired if one is held, and says by whom
//	}
//	defer hold.Unlock()
//	transfer(hold.Context())
//
// A [Lock] is a [rlock.Locker] like its parts: the same methods, the same Hold, the same errors. It
// may be a part itself. The parts may be of any kind, on one Redis or on several.
//
// # Why it cannot deadlock
//
// Every user of this package acquires its locks in one order, by server, slot (on a cluster) and
// name, whatever the order of the arguments. A waiter holds only locks that come before the one it
// waits for. In a circle of waiters, one would hold the last of the locks they wait for, and wait
// for an earlier one.
//
// Locks acquired one by one follow no such order, nor does Redisson's RedissonMultiLock, which
// acquires them in the order given: use a limited wait beside those. Processes order servers alike
// only if they call them by the same names: see rlock.Options.Server.
//
// # Batches
//
// Plain locks of one client (on a cluster: of one slot) that follow each other in the order form a
// batch: one script tries them all, and one releases them. If one is held, the MultiLock waits for
// the first part alone, and then tries the rest: callers of single locks cannot starve it.
//
// # Leases
//
// Each part is acquired for the requested lease. While the MultiLock waits for a part, it extends
// the leases of those it holds. When all are held, it extends each part whose deadline is earlier
// than the last one's by more than the drift (lease/100 + 2 ms), with a command that checks the
// owner: if the part was lost meanwhile, the acquisition fails. With a watchdog the same command
// checks the parts that have been held for 100 ms. (Redisson does not check the owner.)
//
// # The hold
//
// Deadline is the earliest deadline of the parts, and Owner is the owner of the first part in the
// order. Token is the token of the fenced part if there is exactly one, else 0. Extend extends each
// part; if some fail, the others keep their new lease.
//
// The hold lasts as long as all of its parts. When one is lost, the hold ends with an error that
// names the part. The others stay held until Unlock, so always call it. A part that is released
// alone, by [rlock.Lock.Unlock] for the same owner, counts as lost.
package multilock
