// Package lua contains the Lua scripts that implement the locks in Redis, and Go functions to send
// the scripts. Redis runs each script as a single step, so no other client sees a lock half
// changed. Package rlock calls these functions, so users of locks never need this package.
//
// # Locks in Redis
//
// The key of a lock has the name of the lock, and the value is a hash. If an owner holds the lock,
// the hash has a field with the name of the owner. The value of the field is the hold count, and
// the TTL of the key is the lease. A free lock has no key, because a release deletes the field, and
// Redis deletes the key when the lease ends.
//
//   - An owner is an identity that can hold a lock. The name of an owner is "<client id>:<number>".
//     A client is an rlock.Client, which usually creates a new name for each acquisition of a free
//     lock.
//   - The holder of a lock is the owner that holds the lock at the moment.
//   - A nested hold is one more hold of an owner that is already the holder. The hold count is the
//     number of all holds. The lock is free after the release of the last hold.
//   - The fence is the number of an acquisition of a fenced lock, also known as a fencing token. A
//     second key has the latest fence, and each acquisition takes the next number.
//
// A read-write lock has more fields and keys, see [ReadWrite]. A RedLock consists of plain locks on
// several servers, see [Ballot].
//
// # Waiting for a plain or fenced lock
//
// A waiter is an owner that has asked for a held lock, and whose caller waits. The client of the
// waiter subscribes to the channel of the lock. The client asks again, by calling Acquire, after
// each message or when the lease of the holder should have ended. The release of the last hold
// reaches the waiters in one of two ways:
//
//   - An announcement is a message to all waiters, on the channel of the lock. The lock is free,
//     and the first client to ask gets it.
//   - A hand-over gives the lock to one waiter in the command of the release. The lock is never
//     free in between, and the waiter need not ask.
//
// A waiter can receive a hand-over in one of two roles:
//
//   - The successor is a waiter of the holder's own client, and the release names the successor.
//     The reply to the release reports whether the successor has the lock.
//   - A registered waiter can belong to any client. The waiter has an entry in a sorted set beside
//     the lock, the registration, so a release finds the waiter there. The script of the release
//     sends a message, the grant, on a channel of the waiter's client.
//
// A registration consists of the owner, the lease after a hand-over, and the kind of lock. The
// score of the entry is the ticket, and the waiter with the lowest ticket comes first. No two
// registrations have the same ticket, even if an owner registers again. The grant has the ticket,
// so a client can ignore a grant for an earlier registration.
//
// In this example, owner A holds the plain lock "job", and owner B of another client waits:
//
//	A acquires the lock       HSET job A 1
//	                          PEXPIRE job 30000
//	B asks                    (reply: A holds the lock for 30 s; B's client subscribes)
//	B asks and registers      ZADD holdfast_lock_waiters:{job} <ticket> "B 30000 plain"
//	A releases the lock       HDEL job A
//	                          ZPOPMIN holdfast_lock_waiters:{job}
//	                          HSET job B 1
//	                          PEXPIRE job 30000
//	                          PUBLISH holdfast_lock_present:{job}:<client id of B> <grant>
//	B receives the grant      (nothing to send: B is the holder)
//
// A streak is a series of hand-overs without a moment in which the lock was free. A long streak is
// interrupted, so that a client without a registration can get the lock. The interruption is a
// release that is due for an announcement. Such a release announces the lock instead of handing it
// over, and so ends the streak. A release is due if its number in the streak is a multiple of 16
// and more than 100 ms have passed since the second hand-over, or if the number is a multiple of 4
// and more than a second has passed. If the clock of Redis was set back since the second hand-over,
// every release whose number is a multiple of 4 is due. A release with [HandOver].SuccessorFirst
// has no number in the streak, and is never due.
//
// The waiters for a fair lock have a queue instead of registrations, see [Fair].
//
// # Channels
//
// A Redis cluster has two kinds of channels. A message on a classic channel (PUBLISH) goes to all
// nodes, but a message on a sharded channel (SPUBLISH) stays with the nodes that have the slot of
// the channel. Both kinds can have a channel with the same name, but a message on one kind does not
// reach listeners on the other. A [wire.Channels] selects the kind. With [wire.Both], scripts use
// sharded channels, and announce a release on the classic channel as well if a client listens only
// there, as Redisson before 3.28 may do. Outside a cluster, all channels are classic. Package
// internal/wire defines the names of all keys and channels.
//
// # Commands
//
// Each function sends a single command with EVALSHA, and blocks until the reply arrives or ctx
// ends. If the server does not know the script, because the server is new or after SCRIPT FLUSH,
// the function sends the command once more with EVAL. If a replica rejects the command, and the
// client then reaches the new master, the function also sends the command once more. The caller
// decides about all other retries.
//
// Errors are of type *rediserr.Error. The Class of an error is ClassTemporary if Redis rejected the
// command for now, ClassPermanent if Redis rejects the command until somebody follows the Advice of
// the error, and ClassUnknown if Redis may have executed the command.
//
// You can repeat a command with an unknown outcome, because a script sets the hold count to an
// absolute value instead of adding to it. Only a repeated ForceUnlock can do harm, because it may
// release a later acquisition. The header of each .lua file documents the arguments, the results,
// and why a second run is safe.
//
// All functions are safe for concurrent use. All scripts run on Redis 6.2 and newer. The folder
// common has fragments of Lua with functions for several scripts. A script names its fragments on
// lines "-- Needs", and package internal/fragments inserts them when the script is first used.
package lua
