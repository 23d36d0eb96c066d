// Package multilock acquires several locks together, all or none.
//
//	both := multilock.New(client.NewLock("account:17"), client.NewLock("account:42"))
//	hold, err := both.TryLock(ctx, 3*time.Second, rlock.Watchdog)
//	if err != nil {
//		return err // matches rlock.ErrNotAcquired if a lock is held, and names the holder
//	}
//	defer hold.UnlockTo(&err)
//	return transfer(hold.Context())
//
// A [Lock] is an [rlock.Locker] like its parts, with the same methods, the same Hold and the same
// errors. The parts may be locks of any kind, on one Redis or on several, and other MultiLocks.
//
// # Why a MultiLock cannot deadlock
//
// Every MultiLock acquires its locks in the same order, by server, slot (on a cluster) and name,
// whatever the order of the arguments. So a waiter only holds locks that come before the lock it
// waits for. In a cycle of waiters, some waiter would hold the last of these locks and wait for an
// earlier lock, which is impossible.
//
// Two kinds of callers do not follow the order: code that acquires locks separately, and
// RedissonMultiLock, which uses the order of its arguments. If you share locks with such callers,
// limit your waits. Processes agree on the order only if all of them use the same names for
// servers. See [rlock.Options].Server.
//
// # Batches
//
// Plain locks of the same client, and on a cluster of the same slot, form a batch if they are
// neighbors in the order. A single script acquires a batch, and another releases it. If a lock of
// the batch is held, the MultiLock waits for the first lock of the batch alone, and then tries the
// rest, so callers of single locks cannot starve a MultiLock.
//
// # Leases
//
// Each part is acquired with the requested lease. While the MultiLock waits for a part, it extends
// the leases of the earlier parts. After the last part, the MultiLock extends each part whose
// deadline is earlier than the deadline of the last part by more than the drift (lease/100 + 2 ms).
// The command checks the owner, so the acquisition fails if a part was lost meanwhile. With a
// watchdog, the same command checks all parts that were acquired at least 100 ms ago. Redisson does
// not check the owner.
//
// # The hold
//
// The Deadline of a hold is the earliest deadline of the parts, and its Owner is the owner of the
// first part in the order. Token is the token of the fenced part if exactly one part is fenced, and
// otherwise 0. Extend extends each part. If some parts fail, the other parts keep the new lease.
//
// The hold lasts as long as all of its parts. When a part is lost, the hold ends with an error that
// names the part. The other parts stay held until Unlock, so always call Unlock. A part counts as
// lost if the same owner releases the part alone with [rlock.Lock.Unlock].
package multilock
