// Package redlock implements a lock over several independent Redis servers. An owner that holds it
// on a quorum of them holds the lock, also while a minority is down, hangs or is slow.
//
//	// a, b and c are rlock clients of three masters.
//	lock := redlock.New(a.NewLock("order:42"), b.NewLock("order:42"), c.NewLock("order:42"))
//	hold, err := lock.TryLock(ctx, 3*time.Second, 30*time.Second)
//	if err != nil {
//		return err // matches rlock.ErrNotAcquired or redlock.ErrNoQuorum, and lists the nodes
//	}
//	defer hold.Unlock()
//	work(hold.Context())
//
// A [Lock] is a [rlock.Locker], and may be part of a MultiLock. It uses the connections, watchdogs
// and subscriptions of its clients, and ends with them: there is nothing to close.
//
// # How it works, and why it excludes others
//
// All nodes are asked at once, with one script each. The lock is acquired as soon as a quorum of
// N/2+1 nodes has granted it, and refused as soon as that is impossible; N-(N/2+1) nodes may fail.
// What a node grants is a part, with a deadline of its own (package watchdog: when it was requested
// + lease - drift), until which the node gives the lock to nobody else. The hold is valid as long
// as a quorum of parts is: its deadline is the quorum-th latest of theirs. Two quorums have a node
// in common, which would have to grant the lock to two owners at once. It does not.
//
// With the lease [rlock.Watchdog] each part is renewed by the watchdog of its node's client. After
// each renewal, nodes without a part, because they were down or have restarted, are asked again. A
// part is never requested twice for the same owner: a release that was given up, and arrives late,
// must not release what was granted afterwards.
//
// Parts granted late are kept if the lock was acquired, else released. A failed attempt is released
// on all nodes that may have granted it, even without a reply. After a split vote each contender
// waits for a random time, longer than a round and doubled each time, to avoid the next collision.
//
// A node that does not reply within [Options].NodeTimeout gets no requests until it has replied to
// the earlier ones, or its connection was given up. One that hangs for an hour costs no time, and a
// constant number of goroutines, however many locks are acquired (see wait.Pool in internal/wait).
//
// # States
//
// An acquisition and its part on each node have states; states.go lists the transitions. When an
// acquisition ends, the release of a granted part is due, and a part being asked for is unwanted:
//
//	asking ─▶ held ─▶ releasing ─▶ released    missing ◀─▶ asked ─▶ granted ─▶ missing
//	   │       ├─▶ lost                                      │         └─▶ release due, kept
//	   ▼       └─▶ closed, left                              └─▶ unwanted ─▶ gone
//	failed                                     release due ─▶ kept
//	           release due, unwanted ─▶ release sent ─▶ freed, gone, release due, kept
//
// # How long to wait for a reply
//
// Timeouts only decide when to give up: a long one delays the news that there is no quorum, or
// that a node hangs. Without [Options].NodeTimeout it is three times the longest of the last 32
// round trips of the node's client, leaving out one once there are 20. Locks that are made for one
// call each share it. Before the first reply it is the upper bound, so that the first attempt
// acquires a free lock, however far away the nodes are. A late reply counts with the time that it
// took, and a request without a reply does not count.
//
// No timeout makes a hold unsafe: the deadline of a part counts from its request, and a reply after
// that deadline grants nothing. When a quorum has replied in time, at most a tenth of the lease (or
// 5 ms, for a lease under 50 ms) is gone, unless NodeTimeout is longer or the requests were queued.
//
// # The hold
//
// An Extend or a nested Lock counts if and only if a quorum of nodes has carried it out. An Unlock
// that leaves levels sends nothing. The last Unlock returns when a quorum of nodes has released the
// lock, and leaves the rest to the background. If too few nodes reply within the CommandTimeout of
// the first client, it returns a *[QuorumError] that matches [rlock.ErrOutcomeUnknown]. Owner is
// that of the first parts on their nodes. To free it by force: [rlock.Lock.ForceUnlock] on each.
//
// # Servers that restart
//
// The argument has a gap: a node that restarts may have forgotten what it granted. In the classic
// case, A, B and C grant the lock to one client, C restarts empty, and C, D and E grant it to
// another. The description of Redlock has the operator keep a restarted node away for the longest
// lease; here the lock does that. The script that acquires on a node reads, in the same atomic
// step, for how long the server has been up (in whole seconds, therefore a second is added). If
// that is less than [Options].MaxLease, the node is not counted. What it has forgotten was granted
// before the crash, for MaxLease at most, and is past its deadline when the node is counted again:
// no quorum relies on it. Releases and renewals are never delayed: they only concern what the node
// still knows. While too many nodes have just been started, as in a new deployment, there is no
// quorum for MaxLease: [DelayedError] says for how long.
//
// A node that keeps its data is delayed, too. With appendfsync everysec, the default of an
// append-only file, a crash may lose the last second of grants; with snapshots, minutes. Only
// appendfsync always loses nothing: [Options].FsyncAlways states it, and turns the delay off.
// FLUSHALL forgets without a restart: [Options].Epoch covers that.
//
// Not covered:
//   - A master with replicas as a node. A promoted replica may lack the last grants, and has been
//     up for long. With Sentinel or Cluster, use one lock with rlock.Options.SyncReplicas.
//   - A server whose clock jumps forward: leases end early, and the uptime looks longer than it is,
//     because Redis counts them by the wall clock. A jump on a minority harms no hold on all nodes.
//   - A server that forgets without a restart: one that evicts keys (see docs/configuration.md), is
//     emptied without Epoch, or is a virtual machine restored from a snapshot.
//   - Processes with another MaxLease, plain locks of the same name with longer leases, and
//     Redisson, which does not delay.
//
// # What it does not guarantee
//
// Martin Kleppmann ("How to do distributed locking", 2016) showed that no lock with leases protects
// a resource by itself. A client may be stopped between checking its lease and its write, by a
// garbage collection, a slow disk or a suspended machine, and write after the lease has ended. A
// message may arrive late with the same effect. And Redlock, unlike consensus protocols, relies on
// clocks: on servers that measure a lease at about the right speed. Salvatore Sanfilippo answered
// ("Is Redlock safe?", 2016) that the first is true of every such lock, that the time between
// request and reply cannot harm it, since the validity is checked after the acquisition, and that
// processes with bounded drift are a reasonable requirement.
//
// The hold's context, which ends at its deadline, and [rlock.Hold.Valid], which reads the clock,
// narrow the gap. Only a resource that refuses writes with an old fencing token closes it.
//
// # No fencing token
//
// Hold.Token is 0. The largest of one counter per node looks like a fencing token, but is none: two
// quorums need not share the node whose counter is ahead, and a node that restarts empty begins
// anew. A counter that grows whatever fails needs consensus. Choose by what an overlap costs:
//   - correctness: use [rlock.Client.NewFencedLock] on one master with appendfsync always, and have
//     the resource check the token. That lock is not available while its server is down, and never
//     has two holders;
//   - work done twice, and the lock must be available while a server is down: use a RedLock;
//   - little: one plain lock on one server is simplest and fastest.
//
// # Redisson
//
// Each part is the plain lock of Redisson, with its key, field, channel and message. A
// RedissonRedLock over the same nodes and names excludes this one, as long as no node restarts, and
// each wakes the other.
package redlock
