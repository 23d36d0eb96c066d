// Package redlock provides a lock on several independent Redis servers. An owner holds the lock if
// the owner holds the lock on a quorum of the servers, so a minority may be down, hung or slow.
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
// watchdogs and subscriptions of its clients, so you have nothing to close.
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
// A call asks all N nodes at once, with a script for each. The call has the lock as soon as a
// quorum of N/2+1 nodes has granted the lock, and fails as soon as a quorum is impossible.
// N-(N/2+1) nodes may fail. Each node grants a part with its own deadline, which is the time of the
// request, plus the lease, minus the drift (see package watchdog). Until then the node grants the
// lock to nobody else. The hold is valid while a quorum of parts is valid, so its deadline is the
// quorum-th latest deadline of the parts. Two quorums have a node in common, and that node never
// grants the lock to two owners.
//
// With the lease [rlock.Watchdog], the client of each node renews the part on its node. After each
// renewal, the lock also asks the nodes without a part, because they were down or have restarted.
// The lock never asks for a part twice with the same name, so a late release cannot release a later
// part.
//
// The lock keeps a late part if the call succeeded, and otherwise releases the part. A failed call
// releases the lock on all nodes, except after a clear refusal, because a node without a reply may
// have granted the lock. After a split vote, each contender waits for a random time before the next
// round. The time is longer than a round, and doubles with each round.
//
// A node that does not reply within [Options].NodeTimeout gets no further requests until the node
// replies or its connection breaks. A node that hangs for an hour costs no time, and a constant
// number of goroutines, regardless of the number of locks.
//
// # How long to wait for a reply
//
// Timeouts only decide when to give up. With a long timeout, you learn later about a missing quorum
// or a hung node. Without [Options].NodeTimeout, the timeout is three times the longest of the last
// 32 round trips of the node. From 20 round trips on, the longest does not count. All locks of a
// client share the round trips. The timeout is at most a tenth of the lease, also before the first
// reply, so that the first call acquires a free lock even if the nodes are far away. A late reply
// counts as a round trip, and a missing reply does not.
//
// No timeout makes a hold unsafe, because the deadline of a part counts from its request, and a
// reply after the deadline grants nothing. When a quorum has replied in time, at most a tenth of
// the lease has passed, or 5 ms for a lease below 50 ms, unless NodeTimeout is longer or the
// requests had to queue.
//
// # The hold
//
// An Extend or a nested Lock succeeds if a quorum of nodes has confirmed. An Unlock of a nested
// hold sends nothing. The last Unlock returns when a quorum of nodes has released the lock, and
// releases the other nodes in the background. If too few nodes reply within the CommandTimeout of
// the first client, Unlock returns a *[QuorumError] that matches [rlock.ErrOutcomeUnknown]. Owner
// is the name of the owner in the first parts on the nodes. To release a RedLock by force, call
// [rlock.Lock.ForceUnlock] on each node.
//
// Hold.Token is 0. The largest of several counters looks like a fencing token, but two quorums need
// not have the node with the largest counter in common, and a node may restart empty. A counter
// that grows in spite of all failures needs consensus.
//
// # Servers that restart
//
// After a restart, a node may have forgotten its grants. For example, A, B and C grant the lock to
// a client, C restarts empty, and C, D and E grant the lock to another client. The description of
// Redlock asks operators to keep a restarted node away for the longest lease. A RedLock does that
// without operators. The script on a node also reads how long the server has been up, in whole
// seconds, and holdfast adds a second. If the time is less than [Options].MaxLease, the node does
// not count. All forgotten locks are past their deadline when the node counts again. Releases and
// renewals work at once, because they only concern locks known to the node.
//
// If too many nodes have just started, as in a new deployment, there is no quorum for MaxLease, and
// [DelayedError] says how much longer that lasts. A node with all its data is delayed as well. With
// appendfsync everysec, the default of an append-only file, a crash may lose the last second of
// grants, and with snapshots minutes. Only appendfsync always loses nothing. State that with
// [Options].FsyncAlways, and the delay is off. FLUSHALL makes a node forget without a restart, and
// [Options].Epoch covers that case.
//
// A RedLock does not cover these cases:
//   - A node that is a master with replicas. A promoted replica may lack the last grants, and has
//     been up for long. With Sentinel or Cluster, use a plain lock with
//     [rlock.Options].SyncReplicas.
//   - A server whose clock jumps forward. Leases end early, and the uptime looks longer, because
//     Redis uses the wall clock for both. A jump on a minority harms no hold on all nodes.
//   - A server that forgets without a restart, because the server evicts keys, was emptied without
//     Epoch, or is a virtual machine restored from a snapshot.
//   - Processes with another MaxLease, plain locks of the same name with longer leases, and
//     Redisson, which does not delay nodes.
//
// # What a RedLock does not guarantee
//
// Martin Kleppmann ("How to do distributed locking", 2016) showed: no lock with leases protects a
// resource alone. A client may pause between the check of its lease and its write, and write after
// the lease has ended. A late message has the same effect. Unlike a consensus protocol, a RedLock
// also relies on servers that measure a lease at about the right speed.
//
// Salvatore Sanfilippo answered ("Is Redlock safe?", 2016). The first problem concerns all such
// locks. The time between request and reply does no harm, because the client checks the validity
// after the acquisition. Bounded clock drift is a reasonable assumption.
//
// The context of the hold and [rlock.Hold.Valid] narrow the gap. Only a resource that rejects old
// fencing tokens closes the gap.
//
// # Redisson
//
// Each part is a plain lock of Redisson, with the same key, field, channel and message. A
// RedissonRedLock on the same nodes and names excludes this lock as long as no node restarts, and
// both wake each other.
package redlock
