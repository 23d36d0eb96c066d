// Package multilock takes all of several locks, or none.
//
//	both := multilock.New(client.NewLock("account:17"), client.NewLock("account:42"))
//	hold, err := both.TryLock(ctx, 3*time.Second, 30*time.Second)
//	if err != nil {
//		return err // errors.Is(err, rlock.ErrNotAcquired): somebody else has one of them, and the error says who
//	}
//	defer hold.Unlock(ctx)
//	transfer(hold.Context())
//
// A [Lock] is a [rlock.Locker] like its parts: the same verbs, the same Hold, the same errors, and
// it may be a part itself. The parts may be of any kind, on one Redis or on several.
//
// # Why it never waits in a circle
//
// All who use this package take the locks that they want in one order, by (server, name), whatever
// order they name them in. Whoever waits holds only locks that come before the one it waits for.
// Were there a circle of waiters, one of them would hold the last of the locks that the circle is
// about, and wait for an earlier one. Locks that are taken one by one, or by Redisson's
// RedissonMultiLock, which takes them in the order given, are bound by no such order: give those
// their wait.
//
// Several processes order servers alike only if they call them the same: see rlock.Options.Server.
// Names need no such care.
//
// # One script where one will do
//
// Plain locks of one client (on a cluster: of one slot) that follow each other in the order are
// tried with one script, and released with one. If one of them is held, the first is waited for by
// itself, and then the rest is tried again: so whoever wants many locks is not starved by those who
// want one.
//
// # Leases
//
// Each part is taken for the lease asked for and no longer. While one is waited for, the leases of
// those that are held are kept from running out; when all are held, each that is older than the
// margin of its deadline (lease/100 + 2 ms) gets the lease anew, by a step that checks the owner:
// if it was lost meanwhile, the acquisition fails. With a watchdog the same step is for parts that
// have been held for 100 ms. (Redisson takes each part for twice the wait, and then sets the lease
// without asking who has it.)
//
// # Its hold
//
// Deadline is the earliest of those of the parts, Owner that of the first part in the order, and
// Token that of the fenced part, if there is just one. Extend extends each part; if some cannot be,
// the others are longer already.
//
// The hold lasts as long as all of its parts. When one is lost it ends, with an error that names
// the part; the others are held until Unlock, which is therefore always to be called. A part that
// is released by itself, by [rlock.Lock.Unlock] for the same owner, is lost to it.
package multilock
