// Package watchdog renews leases for package rlock; users of locks never need it.
//
// A lease is a right that ends by itself unless it is renewed in time. The watchdog renews leases
// in batches, every third of the lease time, and reports one as lost at the instant from which its
// holder must no longer trust it. It reaches the store that grants leases by [Options].Renew only.
//
// # What a lease may be trusted for
//
// The store starts to count when it executes the request, some time between the sending of the
// request and the arrival of its reply. Only the time of sending is known here. The holder counts
// from there, on the monotonic clock, and stops a little early:
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
// The deadline is reported on time whatever a renewal is doing then: waiting for a dead node or for
// a retry, or not running at all. A process that was stopped reports it when it continues; a caller
// that must know at once compares [Lease.Deadline] with the clock. On systems where Go's monotonic
// clock stands still while the machine sleeps, such as Linux, no client-side deadline sees a sleep.
//
// # The life of a lease
//
//	                   renewed, Extend: the deadline moves on, never back
//	                     +------+
//	                     |      |
//	          Add        v      |
//	unwatched ------->  watched +
//	                     |  |  |
//	                     |  |  +--- Remove -----------------------> ended, silently
//	                     |  +------ the store says: not held -----> ended, Lost(ErrGone)
//	                     +--------- the deadline came ------------> ended, Lost(ErrExpired)
//
// Ended is final: neither a late reply nor a late Extend revives a lease, and it cannot be added
// again. A lease whose deadline has passed counts as ended even before that is reported.
//
// # When renewals happen
//
// All leases share one tick, as long as one of them is to be renewed. It comes after 90 to 100 % of
// a third of the lease time, so that processes that started together drift apart. A lease that is
// held only briefly costs no call unless a tick comes meanwhile, and the number of calls does not
// grow with the number of acquisitions. A lease that is added with less than half of the lease time
// left, because less was asked for, is renewed early: after a third of that, with all short ones.
//
// An event after which the store may have forgotten leases brings the tick forward; see
// [Watchdog.RenewNow].
//
// The leases of a group, see [Lease.Group], are cut into batches. The batches of all groups are
// renewed concurrently, with a bounded number of calls in flight for each group, by goroutines that
// live as long as their calls. A failed batch is tried again after a short pause, behind the
// batches that are due by then, as long as the deadline of one of its leases has not come. If a
// call gets no reply in time, the batch is tried again while the first call goes on, and the first
// reply counts. A late reply counts from when its own call began, like a reply in time.
//
// If the store rejects a call, its leases are renewed one by one, so that no lease is lost because
// of another lease. A lease that is rejected alone has calls of its own until it was renewed.
package watchdog
