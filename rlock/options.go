package rlock

import (
	"cmp"
	"log/slog"
	"time"

	"holdfast/internal/wait"
)

const (
	// NoWait is a wait: TryLock tries once.
	NoWait time.Duration = 0
	// Forever is a wait: TryLock waits until its context ends, as Lock does.
	Forever time.Duration = wait.Unlimited
)

// Lease is for how long a lock is held without a renewal, as in rlock.Lease(30*time.Second). It is
// a type of its own, so that a wait and a lease that are swapped do not compile. Redis counts whole
// milliseconds. A lease of 0, or of less than 3 ms, is [ErrInvalid].
type Lease time.Duration

// Watchdog is the lease Options.WatchdogLease, which the client renews until the hold is released.
// Any negative lease means the same, as in Redisson.
const Watchdog Lease = -1

// String returns "watchdog", or the lease as a [time.Duration] prints.
func (l Lease) String() string {
	if l < 0 {
		return "watchdog"
	}
	return time.Duration(l).String()
}

// PubSubMode selects how unlock messages travel on a cluster: see [PubSubAuto]. Elsewhere it is
// PUBLISH.
type PubSubMode int

// The modes.
const (
	// PubSubAuto uses sharded channels if the nodes have them, and otherwise is PubSubClassic. Beside
	// sharded channels it uses classic ones for Redisson before 3.28, which may use no others:
	// waiters listen on both kinds, and a release is also published on the classic channel while
	// another client listens only there.
	PubSubAuto PubSubMode = iota
	// PubSubClassic is PUBLISH and SUBSCRIBE. Each message goes to all nodes.
	PubSubClassic
	// PubSubSharded is SPUBLISH and SSUBSCRIBE, since Redis 7. It may not wake Redisson before 3.28,
	// nor be woken by it.
	PubSubSharded
)

// WriterPreference selects what readers of a read-write lock do while a writer waits.
type WriterPreference int

const (
	// PreferWriters makes new readers of this library step back while one of its writers waits for
	// readers to leave: for at most Options.WatchdogLease at a time, then readers may enter for a
	// tenth of that. When a writer leaves, readers that waited for it come before the next writer.
	// Nested reads are never held back.
	PreferWriters WriterPreference = iota
	// PreferNobody lets readers in while there are readers, as Redisson does. Writers may starve.
	PreferNobody
)

// HandOver selects how a lock gets from a release to a waiter. It concerns plain, non-reentrant and
// fenced locks, and within a process the write side of a read-write lock.
type HandOver int

const (
	// HandOverAnywhere gives the lock to the next waiter of this process or, if others wait
	// elsewhere and it was handed over here 16 times or for 100 ms, to the one that has waited
	// longest in any process of this library. The release is announced to all instead, as by
	// Redisson, if clients that do not register listen, such as Redisson's. So is every 16th if 0.1
	// s have passed since the second, and every 4th after 1 s; those that stay in a process ahead of
	// waiters elsewhere do not count. On a cluster this needs sharded channels.
	HandOverAnywhere HandOver = iota
	// HandOverLocal gives the lock to waiters of this process only.
	HandOverLocal
	// HandOverNone always announces a release to all.
	HandOverNone
)

// Options configures a [Client]. The zero value is ready for use.
type Options struct {
	// WatchdogLease is the lease that [Watchdog] selects. It is renewed after each third of it, and
	// bounds how long a lock outlives its holder's process. Defaults to 30 s, as in Redisson.
	WatchdogLease time.Duration

	// CommandTimeout bounds what neither a wait nor a context bounds: an attempt without wait, an
	// unlock with its retries, an inspection. Defaults to 3 s; at least 1 ms.
	//
	// If the caller's context cannot end, rueidis closes the connection of a command that takes
	// longer, if it was the only one on it; commands sent on it meanwhile then fail.
	CommandTimeout time.Duration

	// PubSub selects the channels on a cluster. Clients of this library that share a lock must use the
	// same mode, or they may not wake each other. Only PubSubAuto and PubSubSharded may be mixed.
	// Defaults to PubSubAuto.
	PubSub PubSubMode

	// FairWindow is for how long a fair lock keeps the queue entry of a waiter that stops asking. If
	// its wait has a limit, that is used instead. At least 10 s. Defaults to 5 min, as in Redisson.
	FairWindow time.Duration

	// WriterPreference orders the readers and writers of read-write locks. Defaults to
	// PreferWriters, which uses three additional keys of this library beside the lock.
	WriterPreference WriterPreference

	// SyncReplicas is the number of replicas that must acknowledge an acquisition, so that a
	// failover to one of them keeps the lock. [SyncConnected] requires one while one is connected.
	// SyncReplicas costs each acquisition a connection of its own and a second round trip (WAIT), and
	// turns hand-overs off. Renewals, nested locks and releases do not wait, so no held lock is lost
	// because replicas fail. Defaults to 0.
	SyncReplicas int

	// SyncTimeout bounds the wait for acknowledgements, as do half the lease and half of what is
	// left of the wait. With too few by then the acquisition is undone, and fails with
	// [ErrNotReplicated]. Defaults to 1 s, as in Redisson.
	SyncTimeout time.Duration

	// HandOver selects how a lock gets from a release to a waiter. With SyncReplicas it is
	// HandOverNone. Defaults to HandOverAnywhere.
	HandOver HandOver

	// Server names this Redis in errors, and in the order in which a MultiLock acquires its parts:
	// all processes that share locks must use the same name. Defaults to the address. With Sentinel
	// and Cluster, whose addresses change, and with replicas that rueidis reads from, there is no
	// default, and a MultiLock over several Redises needs it. If a MultiLock has the same lock name
	// in several databases of one server, give each database its own Server.
	Server string

	// ReleaseOnClose makes Close release what this client holds. Defaults to false: leases run out.
	ReleaseOnClose bool

	// MaxHold bounds how long the watchdog renews a lock: after at most MaxHold it is lost
	// ([ErrLost]), however long its holder still works, because the lease is not renewed beyond that.
	// A warning with the stack of the acquisition is logged when half of it is over. It costs each
	// acquisition about a microsecond. At least twice WatchdogLease. Defaults to 0, no bound. Each
	// node of a RedLock counts from when it was acquired there.
	MaxHold time.Duration

	// Debug records where each lock is acquired, so that errors and warnings name the line of code.
	// A goroutine that waits for a lock that it holds itself is then logged at once.
	// It costs each acquisition about a microsecond. Defaults to false.
	Debug bool

	// Label is shown with the host and the process wherever the holder of a lock is named, in other
	// processes as well: what this process does, for example "nightly". Defaults to "".
	Label string

	// Anonymous keeps Redis from being told who this client is. Otherwise a client that holds or
	// waits for locks has a key holdfast_client:{<id>} there, with program, host, process id, start of
	// the process and Label: one command for each third of WatchdogLease, however many locks. Close
	// deletes it, or it expires after three times WatchdogLease. A user whose ACL forbids that key
	// stays unknown. Defaults to false.
	Anonymous bool

	// Tracer is told how locks are acquired, held and lost, for metrics and traces. Package
	// holdfast/otel has one for OpenTelemetry; [MultiTracer] makes one of several. Defaults to nil,
	// which costs nothing.
	Tracer Tracer

	// NameMapper maps the names that locks are made with to their names in Redis, like Redisson's;
	// see [Prefix]. It is called once for each lock that is made, and must return the same name for
	// the same argument. Defaults to nil: names are used as they are.
	NameMapper func(name string) string

	// Logger receives what an operator must know: a lost lock, a failed renewal, a message that
	// Redis refuses to publish. Defaults to slog.Default().
	Logger *slog.Logger
}

// Prefix returns an [Options].NameMapper that puts prefix before each name.
func Prefix(prefix string) func(name string) string {
	return func(name string) string { return prefix + name }
}

// mapped returns the name in Redis of the lock that a caller calls name.
func (o Options) mapped(name string) string {
	if o.NameMapper == nil || name == "" {
		return name
	}
	return o.NameMapper(name)
}

// withDefaults sets the defaults and rejects invalid values.
func (o Options) withDefaults() (Options, error) {
	o.WatchdogLease = cmp.Or(o.WatchdogLease, 30*time.Second)
	o.CommandTimeout = cmp.Or(o.CommandTimeout, 3*time.Second)
	o.FairWindow = cmp.Or(o.FairWindow, 5*time.Minute)
	o.SyncTimeout = cmp.Or(o.SyncTimeout, time.Second)
	o.Logger = cmp.Or(o.Logger, slog.Default())
	switch {
	case o.WatchdogLease < 10*time.Millisecond: // a third of it must do for a renewal
		return o, invalid("Options.WatchdogLease must be at least 10ms (got %v)", o.WatchdogLease)
	case o.CommandTimeout < time.Millisecond:
		return o, invalid("Options.CommandTimeout must be at least 1ms (got %v)", o.CommandTimeout)
	case o.MaxHold != 0 && o.MaxHold/2 < o.WatchdogLease:
		return o, invalid("Options.MaxHold must be at least %v, twice WatchdogLease (got %v)",
			2*o.WatchdogLease, o.MaxHold)
	case o.FairWindow < 2*longestPause:
		return o, invalid("Options.FairWindow must be at least %v (got %v), because waiters ask every %v",
			2*longestPause, o.FairWindow, longestPause)
	case o.WriterPreference < PreferWriters || o.WriterPreference > PreferNobody:
		return o, invalid("Options.WriterPreference must be PreferWriters or PreferNobody (got %d)",
			o.WriterPreference)
	case o.SyncReplicas < SyncConnected:
		return o, invalid("Options.SyncReplicas must be a number of replicas or SyncConnected (got %d)",
			o.SyncReplicas)
	case o.SyncTimeout < time.Millisecond:
		return o, invalid("Options.SyncTimeout must be at least 1ms (got %v)", o.SyncTimeout)
	case o.HandOver < HandOverAnywhere || o.HandOver > HandOverNone:
		return o, invalid("Options.HandOver must be a constant of type HandOver (got %d)", o.HandOver)
	case o.PubSub < PubSubAuto || o.PubSub > PubSubSharded:
		return o, invalid("Options.PubSub must be a constant of type PubSubMode (got %d)", o.PubSub)
	}
	if o.SyncReplicas != 0 {
		o.HandOver = HandOverNone // a hand-over would not wait for replicas
	}
	return o, nil
}

// grantLease returns the lease of a lock granted to a waiter in watchdog mode, until its first
// renewal. It is short, because others wait for it if the new owner's process is stopped. A lease
// that ends before waiters ask by themselves costs a message to each of their processes, so one
// that is only a little shorter is extended to that time.
func (o Options) grantLease() time.Duration {
	lease := min(o.WatchdogLease, max(o.WatchdogLease/10, time.Second))
	if lease >= 3*time.Second {
		lease = max(lease, longestPause)
	}
	return lease
}
