// Package watchdog keeps leases alive for package rlock, and reports when one is lost. Users of
// locks do not need it.
//
// A lease is a right that ends by itself unless it is renewed in time. The watchdog renews leases
// in batches, every third of the lease time. It reports a lease as lost at the instant from which
// its holder must no longer trust it. It knows nothing of the store that grants leases: it is given
// a [RenewFunc].
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
// The drift is that of the Redlock description: one per cent for two clocks that run at different
// speeds, and two milliseconds for a store that counts in whole milliseconds. See [Drift] and
// [Deadline].
//
// A timer reports the deadline on time whatever a renewal is doing then: waiting for a dead node,
// waiting to be retried, or not running at all. A process that was stopped reports it when it
// continues. A caller that must know at once compares [Lease.Deadline] with the clock. On systems
// where Go's monotonic clock stands still while the machine sleeps, such as Linux, no client-side
// deadline sees that sleep.
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
//	                     |  +------ the store says: not held -----> ended, OnLost(ErrGone)
//	                     +--------- the deadline came ------------> ended, OnLost(ErrExpired)
//
// Ended is final: neither a late reply nor a late Extend revives a lease, and it cannot be added
// again. A lease whose deadline has passed counts as ended even while the goroutine that reports it
// has yet to run.
//
// # When renewals happen
//
// All leases share one tick. It starts when the first renewable lease is added, about a third of
// the lease time before the first renewal, and stops with the last one. A lease that is held only
// briefly costs no call unless a tick comes while it is held, and the number of calls does not grow
// with the number of acquisitions. Each interval is 90 to 100 % of a third of the lease time.
// Processes that started together therefore drift apart, and no lease waits longer than that third
// for its renewal.
//
// A lease may be added with less than half of the lease time left, because less was asked for at
// first. It is renewed early, after a third of what it has left, together with all others that are
// short then.
//
// At a tick the leases are split by [Lease.Group] and cut into batches. Groups are renewed
// concurrently, each by one goroutine that lives as long as there are calls to make. The batches of
// a group are renewed one after the other. A batch that failed goes to the end of the queue and is
// retried after a short pause, as long as it has a lease whose deadline has not come. A group that
// is still busy at the next tick gets the newly due leases added to its queue.
package watchdog
