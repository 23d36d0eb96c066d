// Package watchdog keeps leases alive for package rlock, and says when one is lost; users of locks
// do not need it.
//
// A lease is a right that ends by itself unless it is renewed in time. The watchdog renews every
// lease that asks for it each third of the lease time, in batches, and reports a lease as lost at
// the instant from which its holder must no longer trust it. It knows nothing of the store that
// grants leases: it is given a [RenewFunc].
//
// # What a lease may be trusted for
//
// The store starts to count when it carries the request out, somewhere between the sending of the
// request and the arrival of its reply. Only the sending is known here, so that is where the holder
// starts to count, on the monotonic clock, and it stops a little early:
//
//	client   start                 reply                           deadline        start + lease
//	           |---------------------|--------------------------------|- - - drift - - -|
//	           :  sent, not granted  :            trusted             :   not trusted   :
//	           :                                                      :                 :
//	store      :        carried out                                   :                 :      expiry
//	           :             |----------------------------------------:-----------------:--------|
//	           :             :             held for nobody else       :                 :        : free for others
//
//	deadline = start + lease - drift        drift = lease/100 + 2 ms
//
// The drift is that of the Redlock description: one per cent for two clocks that run at different
// speeds, and two milliseconds for a store that counts in whole milliseconds. See [Drift] and
// [Deadline].
//
// The deadline is reported by a timer, so it is reported on time whatever a renewal is doing then:
// waiting for a dead node, waiting to be tried again, or not running at all. A process that was
// stopped reports it when it goes on. Whoever must know at once asks [Lease.Deadline] and compares
// it with the clock. On systems where Go's monotonic clock stands still while the machine sleeps,
// which Linux is one of, no client-side deadline sees that sleep.
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
// the lease time before the first renewal, and stops with the last one. So a lease that is held
// shortly costs no call unless the tick happens to come while it is held, and the number of calls
// does not grow with the number of acquisitions. Each interval is 90 to 100 % of a third of the
// lease time, so that processes which started together drift apart, and no lease waits for its
// renewal for longer than that third.
//
// A lease that is added with less than half of the lease time left, because less was asked for at
// first, is renewed earlier: when a third of what it has left is over, with all others that are
// short then.
//
// At a tick the leases are split by [Lease.Group] and cut into batches. Groups are worked on side
// by side, each by one goroutine that lives as long as there are calls to make; the batches of a
// group follow each other. A batch that failed goes to the end of the line and is tried again after
// a short pause, for as long as it has a lease whose deadline has not come. A group that is still
// busy at the next tick gets the newly due leases added to its line.
package watchdog
