package rlock

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"
)

const (
	// NoWait as the wait of TryLock: one attempt, no waiting.
	NoWait time.Duration = 0
	// Watchdog as a lease: Options.WatchdogLease, renewed until the hold is released.
	Watchdog time.Duration = 0
)

// PubSubMode chooses how unlock messages travel on a cluster. Everywhere else it is PUBLISH.
type PubSubMode int

const (
	// PubSubAuto uses sharded channels on a cluster whose nodes know them (Redis 7), as Redisson's
	// AUTO mode does.
	PubSubAuto PubSubMode = iota
	// PubSubClassic uses PUBLISH and SUBSCRIBE.
	PubSubClassic
	// PubSubSharded uses SPUBLISH and SSUBSCRIBE, which Redis has since version 7.
	PubSubSharded
)

// WriterPreference says what readers of a read-write lock do while a writer waits.
type WriterPreference int

const (
	// PreferWriters makes new readers of this library step back while one of its writers waits for
	// readers to leave: for at most Options.WatchdogLease at a time, then readers may pass for a
	// tenth of that. When a writer leaves, readers that waited for it come before the next writer.
	// Nested reads are never held back.
	PreferWriters WriterPreference = iota
	// PreferNobody lets readers in as long as there are readers, as Redisson does: a writer may
	// wait for ever.
	PreferNobody
)

// Options of a [Client]. The zero value is ready for use.
type Options struct {
	// WatchdogLease is the lease of a lock taken with the lease [Watchdog]. It is renewed every
	// third of it, and it is how long a lock stays held after its holder's process has died.
	// Defaults to 30 s, as in Redisson.
	WatchdogLease time.Duration

	// CommandTimeout bounds one exchange with Redis where no wait and no context does: an attempt
	// without wait, an unlock with its repetitions, an inspection. Defaults to 3 s; at least 1 ms.
	// rueidis closes the connection of a command that takes longer, if that was alone on it; what
	// others sent on it meanwhile fails then. One caller may be kept for as long as rueidis dials a
	// connection meanwhile (see rueidis.ClientOption.Dialer); those of the minute after it are not.
	CommandTimeout time.Duration

	// RenewBatch is the largest number of leases renewed by one command. Defaults to 100.
	RenewBatch int

	// PubSub chooses between classic and sharded channels on a cluster. All clients that share a
	// lock must agree, or they do not wake each other. Defaults to PubSubAuto.
	PubSub PubSubMode

	// FairWindow is for how long a fair lock keeps the place of a waiter without a limit on its
	// wait that does not ask again; at least 10 s. With a limit it is that. Defaults to 5 min, as
	// in Redisson.
	FairWindow time.Duration

	// WriterPreference is between the readers and writers of read-write locks. It uses three keys
	// of this library's own beside the lock. Defaults to PreferWriters.
	WriterPreference WriterPreference

	// SyncReplicas is how many replicas must acknowledge an acquisition, so that a failover to one
	// of them does not lose the lock. It costs a connection of its own and a second round trip
	// (WAIT) for each acquisition. Renewals, nested locks and releases are not waited for. Defaults
	// to 0: none.
	SyncReplicas int

	// SyncTimeout is for how long acknowledgements are waited for, and at most for half the lease
	// and half of what is left of the wait. If there are too few then, the acquisition is undone
	// and fails with [ErrNotReplicated]. Defaults to 1 s, as in Redisson.
	SyncTimeout time.Duration

	// HandOver says how a lock gets to those who wait for it. With SyncReplicas it is HandOverNone.
	// Defaults to HandOverToAll.
	HandOver HandOver

	// Server is what this Redis is called where several are at work: in errors, and in the order in
	// which a MultiLock takes its parts, so all processes that share locks must give it the same.
	// Defaults to its address. With Sentinel and Cluster, whose addresses change, and with replicas
	// that rueidis reads from, it has no default, and a MultiLock over several Redises needs it.
	Server string

	// ReleaseOnClose makes Close release everything this client holds. Defaults to false: the
	// leases run out.
	ReleaseOnClose bool

	// Logger gets what an operator must know: a lost lock, a failed renewal, a message that may not
	// be published. Defaults to slog.Default().
	Logger *slog.Logger
}

// withDefaults fills in what is not given and refuses what cannot work.
func (o Options) withDefaults() (Options, error) {
	o.WatchdogLease = cmp.Or(o.WatchdogLease, 30*time.Second)
	o.CommandTimeout = cmp.Or(o.CommandTimeout, 3*time.Second)
	o.RenewBatch = cmp.Or(o.RenewBatch, 100)
	o.FairWindow = cmp.Or(o.FairWindow, 5*time.Minute)
	o.SyncTimeout = cmp.Or(o.SyncTimeout, time.Second)
	o.Logger = cmp.Or(o.Logger, slog.Default())
	switch {
	case o.WatchdogLease < minWatchdogLease:
		return o, fmt.Errorf(
			"%w: WatchdogLease %v: want at least %v",
			ErrInvalid,
			o.WatchdogLease,
			minWatchdogLease,
		)
	case o.CommandTimeout < time.Millisecond:
		return o, fmt.Errorf(
			"%w: CommandTimeout %v: want at least 1ms",
			ErrInvalid,
			o.CommandTimeout,
		)
	case o.RenewBatch < 0:
		return o, fmt.Errorf("%w: RenewBatch %d is negative", ErrInvalid, o.RenewBatch)
	case o.FairWindow < 2*longestPause:
		return o, fmt.Errorf(
			"%w: FairWindow %v: want at least %v, because a waiter asks every %v",
			ErrInvalid,
			o.FairWindow,
			2*longestPause,
			longestPause,
		)
	case o.WriterPreference < PreferWriters || o.WriterPreference > PreferNobody:
		return o, fmt.Errorf(
			"%w: WriterPreference %d is neither PreferWriters nor PreferNobody",
			ErrInvalid,
			o.WriterPreference,
		)
	case o.SyncReplicas < 0:
		return o, fmt.Errorf("%w: SyncReplicas %d is negative", ErrInvalid, o.SyncReplicas)
	case o.SyncTimeout < time.Millisecond:
		return o, fmt.Errorf("%w: SyncTimeout %v: want at least 1ms", ErrInvalid, o.SyncTimeout)
	case o.HandOver < HandOverToAll || o.HandOver > HandOverNone:
		return o, fmt.Errorf("%w: HandOver %d is none of the modes", ErrInvalid, o.HandOver)
	case o.PubSub < PubSubAuto || o.PubSub > PubSubSharded:
		return o, fmt.Errorf("%w: PubSub %d is none of the modes", ErrInvalid, o.PubSub)
	}
	return o, nil
}

// grantLease is the lease of a lock that is given to a waiter in watchdog mode, until its first
// renewal: others wait for no longer if its process has been stopped. A lease that ends before
// waiters look by themselves is announced to each of their processes, which costs a message; so one
// that is only a little shorter is lengthened to that time.
func (o Options) grantLease() time.Duration {
	lease := min(o.WatchdogLease, max(o.WatchdogLease/10, time.Second))
	if lease >= 3*time.Second {
		lease = max(lease, longestPause)
	}
	return lease
}

// minWatchdogLease is the shortest lease that leaves a third of it for a renewal on a busy network.
const minWatchdogLease = 10 * time.Millisecond
