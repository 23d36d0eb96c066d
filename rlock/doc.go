// Package rlock provides distributed locks on Redis, wire-compatible with Redisson's: reentrant,
// non-reentrant, fair, read-write and fenced locks.
//
//	client, err := rlock.New(redis, rlock.Options{})
//	...
//	lock := client.NewLock("order:42")
//	hold, err := lock.TryLock(ctx, 3*time.Second, rlock.Watchdog)
//	if err != nil {
//		return err // errors.Is(err, rlock.ErrNotAcquired): somebody else has it
//	}
//	defer hold.UnlockTo(&err) // err is a named result
//	return work(hold.Context())
//
// # Who holds a lock
//
// A lock is held by an owner: an identity, unique in this process, that travels in the context. The
// context of a hold carries its owner, so acquiring the lock with it again re-enters. A context
// without an owner gets a new one for each acquisition. Goroutines that share an owner do not
// exclude each other; give each its own with [Detached].
//
// A nested attempt with a context that does not come from the hold waits for its own caller. That
// is [ErrDeadlock] if the contexts show it, and so is a cycle of callers of this process; else a
// *[HeldError] says that the holder is of this process, and a wait that is longer than a watchdog's
// lease is logged.
//
// In Redis an owner is "<client id>:<number>", with a new number whenever it acquires a free lock.
// (Redisson reuses the id of the thread.) A release that was given up, and is delivered late by a
// connection thought dead, must not find a later acquisition of the same owner.
//
// Half of the number is drawn at random for each acquisition. If a virtual machine or a process is
// cloned with its memory, neither copy mistakes a new lock of the other copy for its own lock. But
// both copies hold the locks that were held at that moment. Both also have the same client id,
// which Redis uses to notify a waiter of a hand-over, so each copy gives back the locks that were
// handed over to the other copy. Close the client before a snapshot, or make new clients in each
// copy before it acquires a lock.
//
// # Kinds of locks
//
// All kinds are used in the same way, through [Lock], and their holds are a [Hold].
//
//   - A plain lock ([Client.NewLock]) goes to the waiters of a process in the order of arrival, and
//     between processes as [HandOver] says. If clients of other libraries wait as well, whichever
//     is quickest after a release gets it. It costs least.
//   - A fair lock ([Client.NewFairLock]) goes to waiters of all processes in the order of arrival.
//   - A read-write lock ([Client.NewReadWriteLock]) has any number of readers or one writer.
//   - A fenced lock ([Client.NewFencedLock]) numbers its acquisitions, for a resource that refuses
//     writes of earlier ones.
//   - A non-reentrant lock ([Client.NewNonReentrantLock]), and a fair one
//     ([Client.NewNonReentrantFairLock]), refuse an owner that holds it already.
//
// Package multilock acquires all of several locks, and package redlock makes one lock of plain ones
// on several servers. Both implement [Locker], and their holds are a Hold, too.
//
// Use a name for one kind only. Locks of different kinds with the same name exclude each other,
// even for one owner, which does not re-enter across kinds. They do not always wake each other;
// waiters then ask again after 5 s at the latest.
//
// # What a hold promises, and for how long
//
// A hold is valid until its deadline: the start of the last successful acquire or renewal, plus the
// lease, minus a margin for drifting clocks (computed by package watchdog). At that instant its
// context ends with the cause [ErrLost], whatever is in flight. As long as clocks run at the same
// speed within that margin and the server keeps what it was told, no other client acquires the lock
// before that instant.
//
//	         Lock, TryLock                Unlock of the last level        Redis says so
//	free ───────────────────▶ held ───────────────────────────▶ releasing ──────────▶ released
//	                         │    │ │                               │
//	      Lock with its owner│    │ │ deadline passed, key gone,    │ no reply in time
//	     (a level is added)  │    │ │ ForceUnlock                   ▼
//	                         │    │ └────────────▶ lost        unconfirmed: cleaned up
//	                         ▼    │ Leave, Detach
//	 held, deeper ── Unlock ──▶   └──▶ left: the lease runs out, or another goes on with it
//
// The watchdog renews a lock until it is released or its client is closed. Options.MaxHold bounds
// how long. If nobody can reach the hold, its context or the context of [WithOwner] that it was
// acquired with, nobody can release the lock. The client logs that once, and the watchdog goes on
// renewing the lock.
//
// A lock is also lost if Redis says that it was gone before its release. A hold ends with
// [ErrReleased] when it is released, and with [ErrLost] when it is lost. When its client is closed
// it ends with [ErrClosed]: the lock stays until its lease runs out, and is not renewed.
//
// A hold cannot make a process notice in time. A process that is stopped past its deadline
// notices only when it runs again, and a write it sent before may arrive afterwards. [Hold.Valid]
// narrows that gap; only a resource that checks fencing tokens closes it. A lock on one Redis is as
// durable as that Redis: a failover to a replica that had not received the lock loses it.
//
// # Waiting
//
// Waiters do not poll. Of the waiters for a lock in one process only the first asks Redis. It
// listens on the lock's channel and sleeps until an unlock message wakes it or the holder's lease
// should be over, and never longer than 5 s. After an interruption of the subscription it asks
// again.
//
// A release of any lock but a read or fair one gives it to that waiter by the same command if it
// can or, except for a write lock, to the first waiter in another process; see [HandOver]. Other
// waiters are not told, unless the lease of the hand-over is shorter than 5 s: then a number on the
// channel tells them when to ask again, in case the new owner dies.
//
// Waiters for a fair lock queue in Redis instead. Each listens on a channel of its own and asks at
// least every 5 s to stay in the queue; Redis removes it when its wait is over.
//
// # Metrics and traces
//
// [Options].Tracer is told of each step: who waits and for how long, how a lock was acquired, how
// long it was held, and what was lost or nearly lost. Package holdfast/otel makes metrics and
// traces of it.
//
// # Failures
//
// Each command may be retried without harm, because it carries the hold count that it is to leave
// behind. A command whose outcome is unknown is retried while its caller waits, and undone in the
// background once the caller has left.
//
// One case remains open. A writer that reads has one name for both locks, because it could not read
// otherwise. A release of its read lock that was given up, and arrives after the same writer has
// acquired the read lock again, releases that one. Nobody else gets in while the owner writes, and
// the hold ends with [ErrLost] when it stops writing.
package rlock
