package redlock

import (
	"cmp"
	"slices"
	"time"

	"holdfast/internal/compose"
	"holdfast/lua"
	"holdfast/rlock"
	"holdfast/watchdog"
)

// Options configures a [Lock]. The zero value has all defaults. All processes that share a lock
// must use the same MaxLease, FsyncAlways and Epoch.
type Options struct {
	// NodeTimeout limits the wait for the reply of a node. Choose a time much longer than a round trip
	// and much shorter than the lease. Defaults to three times the recent round trips of each node
	// (see the package documentation), but at least lease/200 (no less than 5 ms and no more than 50
	// ms), and at most a tenth of the lease or the CommandTimeout of the client, whichever is less.
	NodeTimeout time.Duration

	// MaxLease is the longest lease of all processes. A longer lease is [rlock.ErrInvalid]. A
	// restarted node does not count for acquisitions until the node has been up for MaxLease, plus a
	// second. Defaults to the WatchdogLease of the clients.
	MaxLease time.Duration

	// FsyncAlways states that every node runs with appendonly yes and appendfsync always, so that a
	// restart forgets nothing. A restarted node then counts at once, and leases may be longer than
	// MaxLease, unless Epoch is set. Do not set FsyncAlways with appendfsync everysec, because a crash
	// then forgets the last second. Defaults to false.
	FsyncAlways bool

	// Epoch keeps the key holdfast_redlock_epoch on each node. The first acquisition without the key
	// shows that the node is new or was emptied, by FLUSHALL or by a restart that lost all data. The
	// node then does not count for MaxLease. Defaults to false.
	Epoch bool
}

// WithOptions returns the lock with other options. Impossible options make each call fail with
// [rlock.ErrInvalid].
func (l *Lock) WithOptions(o Options) *Lock {
	with := *l
	if len(l.nodes) == 0 {
		return &with
	}
	o.MaxLease = cmp.Or(o.MaxLease, l.nodes[0].WatchdogLease())
	with.options, with.delay, with.invalid = o, lua.Delay{}, nil
	if !o.FsyncAlways || o.Epoch {
		with.delay = lua.Delay{For: o.MaxLease, Epoch: o.Epoch, Durable: o.FsyncAlways}
	}
	switch {
	case o.NodeTimeout < 0:
		with.invalid = compose.Invalid("redlock.Options.NodeTimeout must not be negative (got %v)",
			o.NodeTimeout)
	case o.Epoch && slices.ContainsFunc(l.nodes, compose.Node.Clustered):
		with.invalid = compose.Invalid("redlock.Options.Epoch does not work on a cluster, because " +
			"Epoch keeps one key for all locks of a node; leave out Epoch, or use single servers")
	case o.MaxLease < 0:
		with.invalid = compose.Invalid("redlock.Options.MaxLease must not be negative (got %v)",
			o.MaxLease)
	}
	return &with
}

// checkLease returns the lease in whole milliseconds, as Redis counts, or an error for an
// impossible lease.
func (l *Lock) checkLease(asked rlock.Lease) (time.Duration, error) {
	lease := time.Duration(asked)
	switch {
	case lease == 0:
		return 0, compose.ErrNoLease
	case lease < 0:
		lease = l.nodes[0].WatchdogLease()
	}
	whole := lease.Truncate(time.Millisecond)
	switch {
	case whole <= watchdog.Drift(whole):
		return 0, compose.Invalid("lease must be at least 3ms (got %v); use a longer lease, or "+
			"rlock.Watchdog", lease)
	case whole > l.options.MaxLease && l.delay.For > 0:
		return 0, compose.Invalid("lease must be at most MaxLease, %v (got %v), because a node "+
			"that may have lost the lock counts again after MaxLease; use a shorter lease, or raise "+
			"redlock.Options.MaxLease in all processes", l.options.MaxLease, lease)
	}
	return whole, nil
}
