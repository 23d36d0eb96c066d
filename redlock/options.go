package redlock

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"holdfast/internal/hooks"
	"holdfast/lua"
	"holdfast/rlock"
	"holdfast/watchdog"
)

// Options configures a [Lock]. The zero value is ready for use. All processes that share a lock
// must agree on MaxLease, FsyncAlways and Epoch.
type Options struct {
	// NodeTimeout limits the wait for the reply of a node. It should be long compared to a round
	// trip and short compared to the lease. Defaults, for each node, to three times its recent
	// round trips (see the package documentation), at least lease/200 (but 5 to 50 ms), and at most
	// a tenth of the lease and the CommandTimeout of the node's client, whichever is less.
	NodeTimeout time.Duration

	// MaxLease is the longest lease that any process uses. A longer one is refused with
	// [rlock.ErrInvalid]. A node that has restarted is not counted for acquisitions until it has
	// been up for MaxLease (plus a second). Defaults to the WatchdogLease of the clients.
	MaxLease time.Duration

	// FsyncAlways states that every node runs with appendonly yes and appendfsync always (not
	// everysec), so that a restart forgets nothing. A node is then counted at once after a restart,
	// and leases may be longer than MaxLease, unless Epoch is set. Defaults to false.
	FsyncAlways bool

	// Epoch keeps a key, holdfast_redlock_epoch, on each node. From the acquisition on that first
	// misses the key, because the node was emptied (FLUSHALL, or a restart that lost everything) or
	// is new, the node is not counted for MaxLease. Defaults to false.
	Epoch bool
}

// withDefaults returns the options with defaults filled in, or an error if they cannot work.
func (o Options) withDefaults(nodes []hooks.Node) (Options, error) {
	o.MaxLease = cmp.Or(o.MaxLease, nodes[0].WatchdogLease())
	switch {
	case o.NodeTimeout < 0:
		return o, fmt.Errorf("%w: NodeTimeout %v is negative", rlock.ErrInvalid, o.NodeTimeout)
	case o.Epoch && slices.ContainsFunc(nodes, hooks.Node.Clustered):
		return o, fmt.Errorf("%w: Epoch needs a key beside the locks, which a cluster does not "+
			"have: leave it out, or use single servers", rlock.ErrInvalid)
	case o.MaxLease < 0:
		return o, fmt.Errorf("%w: MaxLease %v is negative", rlock.ErrInvalid, o.MaxLease)
	}
	return o, nil
}

// checkLease returns the lease in whole milliseconds, as Redis counts it; an error if it is no use.
func (l *Lock) checkLease(lease time.Duration) (time.Duration, error) {
	if lease == rlock.Watchdog {
		lease = l.nodes[0].WatchdogLease()
	}
	whole, o := lease.Truncate(time.Millisecond), l.options
	switch {
	case whole <= watchdog.Drift(whole):
		return 0, fmt.Errorf("%w: a lease of %v is over before it can be used: "+
			"want at least 3ms, or rlock.Watchdog", rlock.ErrInvalid, lease)
	case whole > o.MaxLease && (!o.FsyncAlways || o.Epoch):
		return 0, fmt.Errorf("%w: a lease of %v is longer than MaxLease, %v, after which a node "+
			"that may have forgotten it is counted again: raise redlock.Options.MaxLease in all "+
			"processes", rlock.ErrInvalid, lease, o.MaxLease)
	}
	return whole, nil
}

// delay returns how long a node that may have forgotten locks is not counted.
func (o Options) delay() lua.Delay {
	if o.FsyncAlways && !o.Epoch {
		return lua.Delay{}
	}
	return lua.Delay{For: o.MaxLease, Epoch: o.Epoch, Durable: o.FsyncAlways}
}
