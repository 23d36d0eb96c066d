// Package rlock has distributed locks on Redis, wire-compatible with Redisson's: reentrant, fair,
// read-write and fenced ones.
//
//	client, err := rlock.New(redis, rlock.Options{})
//	...
//	lock := client.NewLock("order:42")
//	hold, err := lock.TryLock(ctx, 3*time.Second, 30*time.Second)
//	if err != nil {
//		return err // errors.Is(err, rlock.ErrNotAcquired): somebody else has it
//	}
//	defer hold.Unlock(ctx)
//	work(hold.Context())
//
// # Who holds a lock
//
// An owner does: a token, unique within its client, that travels in the context. The context of a
// hold carries the owner of that hold, so a lock taken again with it is re-entered. A context
// without an owner gets a fresh one for each acquisition. Goroutines that share an owner do not
// exclude each other.
//
// In Redis an owner is "<client id>:<token>", with a new token for each acquisition of a free lock.
// Redisson uses the id of the thread, again and again; but a release that was given up, and is
// delivered late by a connection thought dead, must not find a later acquisition of the same owner.
//
// # Kinds of locks
//
// All of them are used in the same way, through [Lock], and their holds are a [Hold].
//
//   - The plain one ([Client.NewLock]) goes to who has waited longest, unless others than clients
//     of this library wait as well: then to whoever is quickest after a release. It costs least.
//   - A fair one ([Client.NewFairLock]) goes to those who wait in the order of their coming, in all
//     processes together.
//   - A read-write lock ([Client.NewReadWriteLock]) has any number of readers or one writer.
//   - A fenced one ([Client.NewFencedLock]) numbers its acquisitions, for a resource that refuses
//     those that are late.
//
// Package multilock takes all of several locks, and package redlock makes one lock of a plain one
// on each of several servers. Theirs is the same interface, [Locker], and their holds are a Hold,
// too.
//
// One name is for one kind. Locks of different kinds with the same name exclude each other, also
// for one owner, which does not re-enter across kinds; but they do not always wake each other, and
// then look for themselves after 5 s at the latest.
//
// # What a hold promises, and for how long
//
// A hold is valid until its deadline: the start of the last successful acquire or renewal, plus the
// lease, minus a margin for drifting clocks (package watchdog reckons it). At that instant its
// context ends with the cause [ErrLost], whatever is in flight. As long as clocks run at the same
// speed within that margin and the server keeps what it was told, no other client acquires the lock
// before.
//
//	         Lock, TryLock                Unlock of the last level        Redis says so
//	free ───────────────────▶ held ───────────────────────────▶ releasing ──────────▶ released
//	                         │    │                                 │
//	      Lock with its owner│    │ deadline passed, key gone,      │ nobody waits any more
//	     (a level is added)  │    │ ForceUnlock                     ▼
//	                         │    └────────────────▶ lost      unconfirmed: cleaned up
//	                         ▼
//	                   held, deeper ── Unlock ──▶ held
//
// A hold ends with [ErrReleased] when it is released, and with [ErrLost] when it is lost. It also
// ends, with [ErrClosed], when its client is closed: the lock stays until its lease runs out, and
// nobody renews it.
//
// What it does not promise: that a process notices in time. One that is stopped past its deadline
// hears of it only when it runs again, and a write it sent before may arrive after. [Hold.Valid]
// narrows that gap; only a resource that checks fencing tokens closes it. And a lock on one Redis
// is as durable as that Redis: a failover to a replica that had not received it loses it.
//
// # Waiting
//
// Waiters do not poll. In one process only the first of those that wait for a lock asks Redis; it
// listens on the lock's channel and sleeps until an unlock message wakes it, until the lease of the
// holder should be over, and never longer than 5 s. Whenever the subscription was interrupted it
// looks again. A release gives a plain, fenced or write lock to it with the same command if it can,
// or a plain or fenced one to the first in another process; see [HandOver]. Other waiters are not
// told of a hand-over, unless its lease is shorter than 5 s: then a number on the channel tells
// them when to look again, in case the new owner dies. Waiters for a fair lock stand in a queue in
// Redis instead. Each listens on a channel of its own and asks at least every 5 s to keep its
// place; Redis drops the place when the wait is over.
//
// # Failures
//
// Each command may be repeated without harm, because it carries the hold count it is to leave
// behind. A command whose outcome is unknown is therefore repeated while its caller waits, and
// undone in the background when the caller has left.
//
// One thing is left open: a writer that reads has one name for both, or it could not read. So a
// release of its read lock that was given up, and arrives when the same writer has taken the read
// lock once more, takes that one. Nobody else gets in as long as it writes, and the hold ends with
// [ErrLost] when it stops writing.
package rlock
