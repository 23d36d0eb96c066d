// Package rlock provides distributed locks on Redis. They are wire-compatible with the locks of
// Redisson, a Redis client for Java. There are reentrant, non-reentrant, fair, read-write, and
// fenced locks.
//
//	client, err := rlock.New(redis, rlock.Options{})
//	...
//	lock := client.NewLock("order:42")
//	err = rlock.Do(ctx, lock, 3*time.Second, rlock.Watchdog, func(ctx context.Context) error {
//		return work(ctx) // ctx ends if the lock is lost
//	})
//
// [Do] waits for the lock for up to 3 seconds, runs the function, and releases the lock. To release
// the lock elsewhere, call TryLock:
//
//	hold, err := lock.TryLock(ctx, 3*time.Second, rlock.Watchdog)
//	if err != nil {
//		return err // errors.Is(err, rlock.ErrNotAcquired) if another owner has the lock
//	}
//	defer hold.UnlockTo(&err) // err is a named result
//	return work(hold.Context())
//
// # Owners
//
// Every held lock has an owner. In Redisson, the owner is a thread. Goroutines have no identity, so
// here the owner is a value in the context. The context of a hold carries the owner, so a call with
// that context can acquire the same lock again. A call whose context has no owner creates a new
// owner for each acquisition. Goroutines with the same owner do not exclude each other, so give
// each goroutine its own owner with [Detached].
//
// A nested call with a context that does not come from the hold waits for its own caller. If the
// contexts show this deadlock, the call returns [ErrDeadlock], which also reports a cycle of
// callers in a process. Otherwise the call waits, and holdfast logs a warning if it waits longer
// than Options.WatchdogLease. When the call gives up, its *[HeldError] says that the holder is in
// this process.
//
// In Redis, the name of an owner is "<client id>:<number>". Redisson uses the id of the thread as
// the number, but holdfast uses a new number for each acquisition of a free lock. So a late release
// from a broken connection cannot release a later acquisition by the same owner. Holds that follow
// each other in local turns (see Waiting) share a number.
//
// Half of the number is random, so if you clone a virtual machine, or a process with its memory,
// neither copy mistakes a new lock of the other copy for its own. But both copies hold the locks
// that were held at the time, and both have the same client id. Redis uses the id to notify a
// waiter of a hand-over, so each copy releases the locks that were handed over to the other copy.
// Close the client before you take a snapshot, or create new clients in each copy before the copy
// acquires a lock.
//
// # Kinds of locks
//
// All kinds have the methods of [Lock], and all return a [Hold].
//
//   - A plain lock ([Client.NewLock]) costs the least. Waiters of a process get the lock in the
//     order of arrival. [HandOver] decides between processes. If clients of other libraries wait as
//     well, the first client to ask after a release gets the lock.
//   - A fair lock ([Client.NewFairLock]) serves the waiters of all processes in the order of
//     arrival.
//   - A read-write lock ([Client.NewReadWriteLock]) has any number of readers or one writer.
//   - A fenced lock ([Client.NewFencedLock]) numbers its acquisitions, so that a resource can
//     reject writes from earlier ones.
//   - A non-reentrant lock ([Client.NewNonReentrantLock], [Client.NewNonReentrantFairLock]) returns
//     an error if the owner has the lock already.
//
// [AtLeast] keeps a lock taken for some time, even if you release the lock earlier.
//
// Package multilock acquires several locks, all or none. Package redlock makes a lock out of plain
// locks on several servers. Both implement [Locker] and return a Hold.
//
// Use each name for only one kind of lock. Locks of different kinds with the same name exclude each
// other, even for the same owner, but do not always wake each other's waiters. A waiter may then
// notice a release up to 5 s late.
//
// # How long you can trust a hold
//
// A hold is valid until its deadline. The deadline is the start of the last successful acquisition
// or renewal, plus the lease, minus a margin for clock drift. At the deadline, the context of the
// hold ends with the cause [ErrLost], even if a command is under way. No other client acquires the
// lock before then, as long as all clocks run at the same speed within the margin and Redis keeps
// its data. The context also ends with the context of the caller, or a while later with
// [WithGrace].
//
//	         Lock, TryLock              Unlock of the last hold        Redis confirms
//	free ───────────────────▶ held ───────────────────────────▶ releasing ──────────▶ released
//	                         │    │ │                               │
//	    Lock by its owner    │    │ │ deadline passed, key gone,    │ no reply in time
//	    (a nested hold)      │    │ │ ForceUnlock                   ▼
//	                         │    │ └────────────▶ lost        unconfirmed: cleaned up
//	                         ▼    │ Leave, Detach
//	 held twice ──── Unlock ──▶   └──▶ left: the lease runs out, or Attach continues
//
// The watchdog renews a lock until you release it, close the client, or lose the lock.
// Options.MaxHold limits the time. If your program can no longer reach the hold, its context, or
// the context of [WithOwner] used to acquire the lock, nobody can release the lock. The client then
// logs one warning and keeps renewing the lock.
//
// A hold ends with [ErrReleased] when you release it, and with [ErrLost] when the lock is lost, for
// example because Redis reports that the lock was gone before the release. It ends with [ErrClosed]
// when you close the client. Redis then keeps the lock until its lease ends, because nobody renews
// it.
//
// A hold cannot make a process notice in time. A process that is paused past the deadline notices
// only when it runs again, and a write sent earlier may still arrive after that. [Hold.Valid]
// narrows the gap, but only a resource that checks fencing tokens closes it. A lock on a single
// Redis is as durable as that Redis. A failover to a replica that has not received the lock loses
// the lock.
//
// # Waiting
//
// Waiters do not poll. Of all waiters for a lock in a process, only the first asks Redis. This
// waiter subscribes to the channel of the lock and sleeps until an unlock message arrives or the
// lease of the holder should have ended, but never for more than 5 s. It asks again after every
// interruption of the subscription.
//
// Unless the lock is a read lock or a fair lock, its release also hands it over to a waiter if
// possible, in the same command. Waiters of the same process usually come first, and otherwise the
// longest waiter of the other processes gets the lock. A write lock is handed over only within a
// process. See [HandOver]. The other waiters are not woken, unless the lease of the hand-over is
// shorter than 5 s. A number on the channel then tells them when to ask again, in case the new
// owner dies.
//
// A process with a hot lock need not ask Redis for each hand-over. A plain, non-reentrant, or write
// lock that was acquired with [Watchdog] takes local turns. The release passes the lock on to the
// next waiter of the process without a command, at most 15 times in a row and for at most 100 ms
// after Redis gave the lock to the process. A writer that has also read releases its lock in Redis.
// The next release goes to Redis, so others wait no longer than without turns. In Redis, the lock
// keeps the owner and the count of the first hold of the turns. A release by a turn returns nil
// even if Redis has just lost the lock. The release that goes to Redis then returns [ErrLost], and
// so does the next renewal. Options.NoLocalTurns sends each release to Redis.
//
// Waiters for a fair lock queue in Redis. Each waiter subscribes to its own channel, and asks at
// least every 5 s to stay in the queue. Redis removes it from the queue when its wait ends.
//
// # Metrics and traces
//
// Options.Tracer receives each step of a lock: who waits and for how long, how a lock was acquired,
// how long it was held, and which locks were lost or nearly lost. Package holdfast/otel has a
// tracer for OpenTelemetry.
//
// # Failures
//
// holdfast can repeat each command without harm, because the command states the hold count to leave
// behind. If the outcome of a command is unknown, holdfast repeats the command while the caller
// waits, and undoes it in the background after the caller has left.
//
// One case remains open. A writer has the same name in the read lock and in the write lock, because
// otherwise the writer could not read. Suppose that holdfast gives up a release of the read lock,
// and that the command arrives after the same writer has acquired the read lock again. Then the
// command releases the new read lock. Nobody else gets in while the owner writes, and the hold ends
// with [ErrLost] when the owner stops writing.
package rlock
