// Package redlock provides a lock on several independent Redis servers. An owner holds the lock
// while it holds a lock on a quorum of the servers, so a minority may be down, hung, or slow.
//
//	// a, b and c are rlock clients of three masters.
//	lock := redlock.New(a.NewLock("order:42"), b.NewLock("order:42"), c.NewLock("order:42"))
//	hold, err := lock.TryLock(ctx, 3*time.Second, rlock.Watchdog)
//	if err != nil {
//		return err // matches rlock.ErrNotAcquired or redlock.ErrNoQuorum, and lists the nodes
//	}
//	defer hold.UnlockTo(&err)
//	return work(hold.Context())
//
// A [Lock] is an [rlock.Locker], and can be a part of a MultiLock. A Lock uses the connections,
// watchdogs and subscriptions of its clients, so you need not close it.
//
// # When to use a RedLock
//
// Choose by the cost of an overlap:
//   - If an overlap corrupts data, use [rlock.Client.NewFencedLock] on one master with appendfsync
//     always, and make the resource check the token. The lock is not available while its server is
//     down, and never has two holders.
//   - If an overlap repeats work, and the lock must be available while a server is down, use a
//     RedLock.
//   - If an overlap costs little, use a plain lock on one server, which is the simplest and
//     fastest.
//
// # How a RedLock works
//
// A call asks all N nodes at once, with one script each. It has the lock as soon as a quorum of
// N/2+1 nodes has granted it, and fails as soon as a quorum is impossible. Up to N-(N/2+1) nodes
// may fail. What a node grants is a part with its own deadline, the time of the request, plus the
// lease, minus the drift (see package watchdog). Until then, the node grants the lock to nobody
// else. The hold is valid while a quorum of parts is valid, so its deadline is the quorum-th latest
// deadline of the parts. Two quorums have a node in common, and that node never grants the lock to
// two owners.
//
// With the lease [rlock.Watchdog], the client of each node renews the part on its node. After each
// renewal, holdfast also asks the nodes without a part, such as nodes that were down or have
// restarted. It never asks a node twice with the same owner name, so a late release cannot release
// a later part.
//
// A node reports late that it has lost its part, for example after somebody deleted the key. If too
// many nodes may have been without their parts at the same moment, another owner may have had a
// quorum then. So the hold is lost, even if some of these nodes have granted their parts again. To
// narrow these moments down, holdfast asks the other nodes whether they still have their parts when
// a node grants its part again. Holdfast does not notice a loss that a node never reports. A node
// reports nothing if it hangs until its part ends, if its client is closed, or if the last Unlock
// does not wait for it.
//
// If a node grants its part late, holdfast keeps the part if the call succeeded, and otherwise
// releases it. A failed call releases the lock on every node except those that clearly rejected the
// request, because a node without a reply may have granted the lock. After a split vote, each
// contender waits for a random time before the next round. This time is longer than a round, and
// doubles each time.
//
// A node that does not reply within [Options].NodeTimeout gets no further requests for a lock until
// the node replies or its connection breaks. Until the lease of its part ends, the node still gets
// renewals of the part. So a node that hangs for an hour costs no time and only a constant number
// of goroutines, regardless of the number of locks.
//
// # How long to wait for a reply
//
// Timeouts only decide when to give up. With a long timeout, you learn later about a missing quorum
// or a hung node. Without [Options].NodeTimeout, the timeout is three times the longest of the last
// 32 round trips of the node. After 20 round trips, the longest is left out. All locks of a client
// share these measurements. A late reply counts with its full time, and a missing reply does not
// count.
//
// This timeout is never longer than a tenth of the lease or the CommandTimeout of the client.
// Before the first reply, it is exactly as long, so the first call acquires a free lock even if the
// nodes are far away.
//
// No timeout makes a hold unsafe, because the deadline of a part counts from its request, and a
// reply after the deadline grants nothing. When a quorum has replied in time, at most a tenth of
// the lease has passed, or 5 ms for a lease below 50 ms, unless NodeTimeout is longer or the
// requests had to queue first.
//
// # The hold
//
// An Extend or a nested Lock succeeds if and only if a quorum of nodes confirms it. An Unlock of a
// nested hold sends nothing. The last Unlock returns when a quorum of nodes has released the lock,
// and releases the other nodes in the background. If too few nodes reply within the CommandTimeout
// of the first client, Unlock returns a *[QuorumError] that matches [rlock.ErrOutcomeUnknown]. The
// Owner of the hold is the name in the first request to each node. To release a RedLock by force,
// call [rlock.Lock.ForceUnlock] on each node.
//
// Hold.Token is 0. The largest of several counters looks like a fencing token, but two quorums need
// not have the node with the largest counter in common, and a node may restart empty. A counter
// that keeps growing in spite of any failure needs consensus.
//
// # Servers that restart
//
// After a restart, a node may have forgotten its grants. For example, A, B and C grant the lock to
// a client, C restarts empty, and C, D and E grant the lock to another client. The description of
// Redlock asks operators to keep a restarted node away for the longest lease. A RedLock does this
// by itself. The script on a node also reads the uptime of the server. Until the uptime reaches
// [Options].MaxLease plus a second, the node does not count. The second is added because Redis
// reports whole seconds. When the node counts again, all forgotten locks are past their deadline.
// Releases and renewals are never delayed, because they only concern locks known to the node. The
// script first asks for the time of the last save, which costs a server much less than its uptime,
// and is never before the start.
//
// If too many nodes have just started, as in a new deployment, there is no quorum for MaxLease, and
// [DelayedError] says how much longer that lasts. A node with all its data is delayed as well. With
// appendfsync everysec, the default of an append-only file, a crash may lose the last second of
// grants, and with snapshots minutes. Only appendfsync always loses nothing. If all nodes use it,
// set [Options].FsyncAlways to turn the delay off. FLUSHALL makes a node forget without a restart,
// and [Options].Epoch covers that case.
//
// A RedLock does not cover these cases:
//   - A node with replicas. A promoted replica may lack the last grants, and has been up for long.
//     With Sentinel or Cluster, use a plain lock with [rlock.Options].SyncReplicas.
//   - A server whose clock jumps forward. Leases end early, and the uptime looks longer, because
//     Redis uses the wall clock for both. A jump on a minority does not harm a hold on all nodes.
//   - A server that forgets without a restart, because the server evicts keys, was emptied without
//     Epoch, or is a virtual machine restored from a snapshot.
//   - Processes with another MaxLease, plain locks of the same name with longer leases, and
//     Redisson, which does not delay nodes.
//
// # What a RedLock does not guarantee
//
// Martin Kleppmann ("How to do distributed locking", 2016) showed that no lock with leases protects
// a resource by itself. A client may pause between the check of its lease and its write, and write
// after the lease has ended. A late message has the same effect. Unlike a consensus protocol, a
// RedLock also relies on servers that measure a lease at about the right speed.
//
// Salvatore Sanfilippo replied ("Is Redlock safe?", 2016) that the first problem affects every such
// lock. He argued that the time between request and reply does no harm, because the client checks
// the validity after the acquisition, and considered bounded clock drift a reasonable assumption.
//
// The context of the hold and [rlock.Hold.Valid] narrow the gap. Only a resource that rejects old
// fencing tokens closes it.
//
// # Redisson
//
// Each part is a plain lock of Redisson, with the same key, field, channel and message. A
// RedissonRedLock on the same nodes and names excludes this lock as long as no node restarts, and
// the two wake each other's waiters.
package redlock
