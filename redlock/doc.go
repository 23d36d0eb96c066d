// Package redlock is a lock over several independent Redis servers: whoever has it on a quorum of
// them has it. It goes on working while a minority of the servers is down, hangs or is slow.
//
//	lock := redlock.New(a.NewLock("order:42"), b.NewLock("order:42"), c.NewLock("order:42")) // rlock clients of three masters
//	hold, err := lock.TryLock(ctx, 3*time.Second, 30*time.Second)
//	if err != nil {
//		return err // errors.Is(err, rlock.ErrNotAcquired), or redlock.ErrNoQuorum: the error says what each node answered
//	}
//	defer hold.Unlock(ctx)
//	work(hold.Context())
//
// A [Lock] is a [rlock.Locker] like any other: the same verbs, the same Hold, and it may be part of
// a MultiLock. It runs on the connections, the watchdogs and the subscriptions of the clients it is
// made of, and ends with them: there is nothing to close.
//
// # How it works, and why nobody else can have it
//
// All nodes are asked at once, with one script each. The lock is had as soon as a quorum of N/2+1
// nodes has granted it, and refused as soon as that has become impossible; N-(N/2+1) nodes may
// fail. What a node grants is a part, with a deadline of its own (package watchdog: when it was
// asked for + lease - drift). Until then the node gives the lock to nobody else. The hold is valid
// as long as a quorum of parts is: its deadline is that of the part with the quorum-th latest one.
// Two quorums have a node in common, and that node would have given the lock to two at the same
// time, which it does not.
//
// With the lease [rlock.Watchdog] each part is renewed by the watchdog of its node's client. So an
// extension counts if and only if a quorum of nodes has carried it out. A node that has no part,
// because it was down or has restarted, is asked for it again after each renewal. A part is never
// asked for twice in the name of the same owner: a release that was given up, and arrives late,
// must not take what was granted afterwards.
//
// Answers that come late are kept if the lock was had, and released if not. A failed attempt is
// released on all nodes on which it may have left something, also on those that did not answer.
// After a split vote each contender waits for a random time, longer than a round and twice as long
// each time, so that they do not meet again.
//
// A node that does not answer within [Options].NodeTimeout is not asked for anything new until it
// has answered what it was asked before, or its connection has been given up. So a node that hangs
// for an hour costs a constant number of goroutines, whatever the number of locks that are taken
// meanwhile (package internal/crew has the argument), and no time.
//
// # How long an answer is waited for
//
// A lock is acquired as soon as a quorum has granted it, whatever the time-outs. They say when to
// give up: a long one delays the news that there is no quorum, or that a node hangs. Without
// [Options].NodeTimeout each node has one of its own: three times its round trip, at least
// lease/200 (but 5 to 50 ms), and at most a tenth of the lease and the CommandTimeout of its
// client. The round trip is what 95 % of the last 32 answers to the node's client took (all of
// them, while there are fewer than 20), so locks that are made for one call each share it. Before
// the first answer the time-out is the upper bound: a free lock is had at the first attempt,
// however far the nodes are.
//
// An answer that comes when nobody waits for it any more counts with the time that it took. A
// question without an answer teaches nothing. So a node that hangs, or is slow, never has a longer
// time-out than that bound, and does not change the time-outs of the others.
//
// No time-out makes a hold unsafe: the deadline of a part counts from when it was asked for, and an
// answer that comes after it is none. A tenth of the lease at most (or 5 ms, for a lease under 50
// ms) is gone when a quorum has answered in time, unless the questions stood in line before.
//
// # Its hold
//
// Extend and a nested lock need a quorum of answers, and a partial Unlock sends nothing. Unlock
// returns when a quorum of nodes has released the lock, and leaves the rest to the background; if
// too few answer within the CommandTimeout of the first client it returns a *[QuorumError] that
// matches [rlock.ErrOutcomeUnknown]. Owner is what the first parts are called on their nodes. To
// free a RedLock by force, use [rlock.Lock.ForceUnlock] on each node.
//
// # Servers that restart
//
// The argument has a gap: a node that restarts may have forgotten what it granted. In the classic
// case A, B and C request the lock to one client, C restarts empty, and C, D and E request it to
// another. The description of Redlock asks the operator to keep a restarted node away for as long
// as the longest lease. Here the lock does it: the script that acquires on a node reads, in the
// same atomic step, for how long the server has been up, and a node that has been up for less than
// [Options].MaxLease is not counted. A part that it has forgotten had been granted before the
// crash, for MaxLease at most; so when the node is counted again, that part is over by its own
// deadline, and no quorum relies on it any more. Longer leases than MaxLease are refused, and all
// processes that share a lock must agree on it. Releases and renewals are always let through: they
// only concern what the node still knows.
//
// The uptime counts in whole seconds, so a second is added. While too many nodes have just been
// started, as in a new deployment, there is no quorum for MaxLease: [DelayedError] says for how
// long.
//
// What the fsync policy changes: with appendfsync everysec, the default of an append-only file, the
// last second of grants may be lost in a crash; with snapshots, minutes. So a node that keeps its
// data is delayed, too. Only appendfsync always loses nothing, and only the operator knows:
// [Options].FsyncAlways states it, and turns the delay off.
//
// FLUSHALL forgets as a crash does, without a restart. [Options].Epoch covers it with a key on each
// node that goes with the data.
//
// Not covered:
//   - A node that is a master with replicas. A replica that is promoted may lack the last grants
//     and has been up for long. Independent masters are just that; with Sentinel or Cluster, use
//     one lock with rlock.Options.SyncReplicas.
//   - A server whose clock jumps forward. Redis counts leases by the wall clock: they end early
//     then, and the uptime looks longer than it is. A jump on a minority of the nodes does no harm
//     to a hold on all of them.
//   - A server that forgets without a restart: one that evicts keys (see "Memory" in the README),
//     is emptied without Epoch, or is a virtual machine that was set back.
//   - Processes with another MaxLease, plain locks of the same name with longer leases, and
//     Redisson, which does not delay.
//
// # What it does not guarantee
//
// Martin Kleppmann ("How to do distributed locking", 2016) showed that no lock with leases protects
// a resource by itself. A client that is stopped, by a garbage collection, a slow disk or a
// suspended machine, between looking at its lease and its write may write after the lease has
// ended; a message may arrive as late. And Redlock, unlike consensus protocols, relies on clocks:
// on servers that measure a lease at about the right speed. Salvatore Sanfilippo answered ("Is
// Redlock safe?", 2016) that the first is true of every such lock, that the validity is checked
// after the lock was acquired, which the time between asking and answering cannot harm, and that
// processes with bounded drift are a reasonable thing to ask for.
//
// Both are right about what follows: the hold's context ends at its deadline, and
// [rlock.Hold.Valid] reads the clock at the moment it is asked; that narrows the gap and does not
// close it. Only a resource that refuses writes with an old fencing token closes it.
//
// # No fencing token
//
// Hold.Token is 0. A counter on each node, of which the holder takes the largest, looks like one
// and is none: two quorums need not share the node whose counter is ahead, and a node that restarts
// empty begins anew. The tests show how a later holder gets a smaller number
// (TestLargestCounterOfAQuorumIsNoFencingToken). A counter that grows whatever fails is what
// consensus is for.
//
// So choose by what an overlap costs. If it costs correctness, use [rlock.Client.NewFencedLock] on
// one master with appendfsync always, and have the resource check the token: that lock is not there
// while its server is down, and is never two. If it costs work done twice, and the lock must be
// there while a server is down, use a RedLock. If neither matters much, one plain lock on one
// server is simplest, and quickest.
//
// # Redisson
//
// Each part is the plain lock of Redisson, with its key, field, channel and message. So a
// RedissonRedLock over the same nodes and names and this one exclude each other, as long as no node
// restarts, and wake each other.
package redlock
