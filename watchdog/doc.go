// Package watchdog renews leases for package rlock. If you use locks, you never need this package.
//
// A lease ends by itself unless its holder renews the lease in time. The watchdog renews leases in
// batches, each third of the lease time. As soon as a holder must no longer trust a lease, the
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
// add the lease again. A lease whose deadline has passed has ended, even before the report.
//
// # When renewals happen
//
// All leases share a tick, as long as some lease needs renewals. A tick comes after 90 to 100 % of
// a third of the lease time, so that processes that started together drift apart. A lease between
// two ticks costs no call, and the number of calls does not grow with the number of acquisitions. A
// lease that starts with less than half of the lease time is renewed after a third of its time,
// together with all short leases.
//
// After an event that may have made the store forget leases, the tick comes earlier. See
// [Watchdog.RenewNow].
//
// The watchdog cuts the leases of a group into batches. See [Lease].Group. The batches of all
// groups are renewed at the same time, with a limited number of calls in flight for each group.
// Each goroutine lives as long as its call. After a failure, a batch waits for a short time and
// then for all batches due by then, and is tried again until the deadline of its last lease. If a
// call gets no reply in time, the watchdog tries the batch again while the first call continues,
// and the first reply counts. A late reply counts from the start of its own call, like any reply.
//
// If the store rejects a call, the watchdog renews the leases of the call one by one, so that no
// lease is lost because of another lease. A lease that was rejected alone has its own calls until
// its renewal succeeds.
package watchdog
