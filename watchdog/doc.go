// Package watchdog renews leases for package rlock. If you use locks, you never need this package.
//
// A lease ends by itself unless its holder renews the lease in time. The watchdog renews leases in
// batches, every third of the lease time. As soon as a holder must no longer trust a lease, the
// watchdog reports the lease as lost. The watchdog reaches the store that grants leases only
// through [Options].Renew.
//
// # How long to trust a lease
//
// The store counts from the execution of the request, at some time between the request and its
// reply. The client only knows when it sent the request. So the holder counts from the request, on
// the monotonic clock, and stops a little early:
//
//	client   start               reply                       deadline        start + lease
//	           |-------------------|----------------------------|- - - drift - - -|
//	           : sent, not granted :          trusted           :   not trusted   :
//	           :                                                :                 :
//	store      :       executed                                 :                 :   expiry
//	           :           |------------------------------------:-----------------:-----|
//	           :           :          held by the owner         :                 :     : free
//
//	deadline = start + lease - drift        drift = lease/100 + 2 ms
//
// The watchdog reports the deadline on time, even if a renewal waits for a dead node or for its
// next attempt. A paused process reports the deadline when the process continues, so a caller that
// must know at once compares [Lease.Deadline] with the clock. On Linux and some other systems, the
// monotonic clock of Go stops while the machine sleeps. No deadline of a client notices such a
// sleep.
//
// # The life of a lease
//
//	                   renewed, Extend: the deadline moves on, never back
//	                     +------+
//	                     |      |
//	          Add        v      |
//	unwatched ------->  watched +
//	                     |  |  |
//	                     |  |  +--- Remove ------------------------> ended, silently
//	                     |  +------ the store: not held -----------> ended, Lost(ErrGone)
//	                     +--------- the deadline came -------------> ended, Lost(ErrExpired)
//
// A lease never leaves the state ended. A late reply or a late Extend has no effect, and you cannot
// add the lease again.
//
// Once its deadline has passed, a lease can no longer be renewed or extended. The lease stays
// watched until the report begins, usually at once. Until then, [Watchdog.Leases] and
// [Watchdog.Find] return the lease, and [Watchdog.Remove] returns true and prevents the report.
//
// # When renewals happen
//
// As long as some lease needs renewals, the watchdog ticks. The time between two ticks is a third
// of [Options].Lease or up to a tenth less, so that processes that started together drift apart. At
// a tick, the watchdog renews all leases with renewals switched on, however much time they have
// left. So a lease that is added and removed between two ticks costs no call.
//
// The next tick comes earlier in these cases:
//
//   - You call [Watchdog.RenewNow], after an event that may have made the store forget leases.
//   - You switch on renewals with [Watchdog.SetRenew], and the last request for the lease would
//     otherwise be more than a third of Options.Lease old by the next tick.
//
// The watchdog renews a lease without a tick in these cases:
//
//   - The lease starts with less than half of Options.Lease. The watchdog renews the lease after a
//     third of its time, together with all other leases that have less than half left by then.
//   - A call for the lease was under way during the last tick, and has now renewed the lease. The
//     watchdog then renews the lease once more, because the next tick could be too late.
//   - A call has failed or is overdue, see below.
//
// The watchdog divides the leases of a group (see [Options].Group) into batches of at most 100
// leases, and makes one call of [Options].Renew for each batch. The calls run at the same time,
// each on its own goroutine. A group has at most 128 calls in flight that are not overdue, and at
// most 256 calls in all. Further batches wait in a queue.
//
// A call without a reply after Lease/6 is overdue. The watchdog then starts a second call for the
// same leases, and the first call continues. The second call is overdue after Lease/3, and so on.
// Every reply counts, from the start of its own call.
//
// A failed batch pauses, and then joins the end of the queue. This repeats until each lease of the
// batch is renewed, removed or lost, or you switch its renewals off. The pause is random, with a
// maximum of Lease/300 at first and Lease/30 later, but the maximum is at least 5 ms.
//
// If the store rejects a call, the watchdog renews the leases of the call one by one, so that no
// lease is lost because of another lease. A lease that was rejected alone has its own calls until
// its renewal succeeds, and pauses for up to Lease/30 at first and Lease/10 later.
package watchdog
