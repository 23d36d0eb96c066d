package rlock

import (
	"cmp"
	"log/slog"
	"time"

	"holdfast/internal/wait"
)

const (
	// NoWait makes TryLock try once.
	NoWait time.Duration = 0
	// Forever makes TryLock wait until its context ends, like Lock.
	Forever time.Duration = wait.Unlimited
)

// Lease is how long Redis keeps a lock without a renewal, as in rlock.Lease(30*time.Second). Lease
// is a type of its own, so that the compiler rejects a swapped wait and lease, unless both are bare
// numbers. Redis counts whole milliseconds. A lease from 0 to below 3 ms is [ErrInvalid].
type Lease time.Duration

// Watchdog selects the lease Options.WatchdogLease, and makes the client renew the lease until you
// release the hold. Any negative lease means the same, as in Redisson.
const Watchdog Lease = -1

// String returns "watchdog" or the lease in the format of [time.Duration].
func (l Lease) String() string {
	if l < 0 {
		return "watchdog"
	}
	return time.Duration(l).String()
}

// PubSubMode selects the channels for unlock messages on a cluster. Other servers always use
// PUBLISH.
type PubSubMode int

// The modes.
const (
	// PubSubAuto uses sharded channels if the nodes support them, and classic channels otherwise.
	// Redisson before 3.28 may only use classic channels. So waiters also listen on the classic
	// channel, and a release also publishes there while another client listens only there.
	PubSubAuto PubSubMode = iota
	// PubSubClassic uses PUBLISH and SUBSCRIBE. Each message goes to all nodes.
	PubSubClassic
	// PubSubSharded uses SPUBLISH and SSUBSCRIBE, which need Redis 7. Clients of Redisson before 3.28
	// may miss these messages, and holdfast may miss theirs.
	PubSubSharded
)

// WriterPreference selects what new readers of a read-write lock do while a writer waits.
type WriterPreference int

const (
	// PreferWriters makes new readers of holdfast wait while a writer of holdfast waits for readers to
	// leave. Readers wait for at most Options.WatchdogLease at a time, and may then enter for a tenth
	// of that time. When a writer leaves, the readers that waited for the writer come before the next
	// writer. Nested reads never wait.
	PreferWriters WriterPreference = iota
	// PreferNobody lets new readers in while others read, as Redisson does. Writers may starve.
	PreferNobody
)

// HandOver selects who gets a lock after a release. HandOver applies to plain, non-reentrant and
// fenced locks, and within a process to write locks.
type HandOver int

const (
	// HandOverAnywhere hands the lock over to the next waiter of this process. If callers of holdfast
	// also wait in other processes, then after 16 hand-overs or 100 ms in this process, the caller
	// that has waited longest in any process gets the lock. On a cluster, hand-overs between processes
	// need sharded channels.
	//
	// Some clients, such as those of Redisson, can only receive announcements. While such a client
	// listens, a release is announced to all waiters instead, except for the hand-overs that a process
	// keeps ahead of waiters elsewhere. Because some waiters cannot be seen, such as one that polls, a
	// release is also announced in place of every 16th hand-over if the second hand-over was more than
	// 100 ms ago, and of every 4th if it was more than 1 s ago. Hand-overs that a process keeps ahead
	// of waiters elsewhere do not count.
	HandOverAnywhere HandOver = iota
	// HandOverLocal hands the lock over to waiters of this process only.
	HandOverLocal
	// HandOverNone always announces a release to all waiters.
	HandOverNone
)

// Options configures a [Client]. The zero value has all defaults.
type Options struct {
	// WatchdogLease is the lease of holds with [Watchdog]. The client renews the lease after each
	// third of it. A lock outlives the process of its holder by at most WatchdogLease. Must be at
	// least 10 ms. Defaults to 30 s, as in Redisson.
	WatchdogLease time.Duration

	// CommandTimeout limits calls without another limit: an attempt with NoWait, a release with its
	// retries, an inspection. Must be at least 1 ms. Defaults to 3 s.
	//
	// If the context of the caller cannot end and a command takes longer, rueidis closes its
	// connection, provided that no other command was using the connection at the start. Commands sent
	// on that connection in the meantime then fail.
	CommandTimeout time.Duration

	// PubSub selects the channels on a cluster. All clients of holdfast that share a lock must use the
	// same mode, or may not wake each other. Only PubSubAuto and PubSubSharded work together. Defaults
	// to PubSubAuto.
	PubSub PubSubMode

	// FairWindow is how long a fair lock keeps the queue entry of a waiter that stops asking. For a
	// wait with a limit, the limit counts instead. Must be at least 10 s. Defaults to 5 min, as in
	// Redisson.
	FairWindow time.Duration

	// WriterPreference decides between the readers and writers of read-write locks. Defaults to
	// PreferWriters, which uses three more keys beside the lock.
	WriterPreference WriterPreference

	// SyncReplicas is the number of replicas that must acknowledge an acquisition, so that a failover
	// to one of these replicas keeps the lock. [SyncConnected] requires one replica while a replica is
	// connected. Each acquisition then needs its own connection and a second round trip (WAIT), and
	// hand-overs are off. Renewals, nested holds and releases do not wait, so the failure of a replica
	// never costs a held lock. Defaults to 0.
	SyncReplicas int

	// SyncTimeout limits the wait for acknowledgments, as do half the lease and half of the remaining
	// wait. If too few replicas acknowledge by then, holdfast undoes the acquisition and returns
	// [ErrNotReplicated]. Must be at least 1 ms. Defaults to 1 s, as in Redisson.
	SyncTimeout time.Duration

	// HandOver selects who gets a lock after a release. With SyncReplicas, the value is always
	// HandOverNone. Defaults to HandOverAnywhere.
	HandOver HandOver

	// NoLocalTurns sends each release to Redis. Otherwise a release may pass a plain, non-reentrant,
	// or write lock on to the next waiter of this process without asking Redis whether the lock still
	// exists, for up to 100 ms. See Waiting in the package documentation. Without hand-overs, there
	// are no local turns either. Defaults to false.
	NoLocalTurns bool

	// Server names this Redis in errors, and determines the order of the parts of a MultiLock, so all
	// processes that share locks must use the same name. Defaults to the address. There is no default
	// with Sentinel or Cluster, because addresses change there, nor if rueidis reads from replicas. A
	// MultiLock over several servers then needs a name. If a MultiLock uses the same lock name in
	// several databases of a server, give each database its own name.
	Server string

	// ReleaseOnClose makes Close release all locks of this client. Defaults to false, so leases run
	// out.
	ReleaseOnClose bool

	// MaxHold limits how long the watchdog renews a lock. By the end of MaxHold, the lock is lost
	// ([ErrLost]), even if its holder still works. After half of MaxHold, holdfast logs a warning with
	// the stack of the acquisition. Each acquisition takes about a microsecond longer. Must be at
	// least twice WatchdogLease. Each node of a RedLock counts from its own acquisition. Defaults to
	// 0, no limit.
	MaxHold time.Duration

	// Debug records where each lock is acquired, so that errors and warnings name the line of code.
	// With Debug, holdfast also logs at once if a goroutine waits for a lock that the same goroutine
	// holds. Each acquisition takes about a microsecond longer. Defaults to false.
	Debug bool

	// Label says what this process does, for example "nightly". Errors and tools show the label with
	// the host and the process of a holder, even in other processes. Defaults to "".
	Label string

	// Anonymous keeps the identity of this client out of Redis. Otherwise a client that holds or
	// awaits locks has a key holdfast_client:{<id>} with the program, the host, the process id, the
	// start of the process, and Label. The key costs a command for each third of WatchdogLease,
	// regardless of the number of locks. Close deletes the key, and otherwise the key expires after
	// three times WatchdogLease. If the ACL of the user forbids the key, the client stays unknown.
	// Defaults to false.
	Anonymous bool

	// Tracer receives how locks are acquired, held and lost, for metrics and traces. Package
	// holdfast/otel has a Tracer for OpenTelemetry, and [MultiTracer] combines several. Defaults to
	// nil, which costs nothing.
	Tracer Tracer

	// NameMapper maps the name of each lock to its name in Redis, like the NameMapper of Redisson. See
	// [Prefix]. The client calls NameMapper once for each new lock, and the same argument must always
	// have the same result. Defaults to nil, which keeps names as they are.
	NameMapper func(name string) string

	// Logger receives what an operator must know, such as a lost lock, a failed renewal, or a message
	// that Redis rejects. Defaults to slog.Default().
	Logger *slog.Logger
}

// Prefix returns an [Options].NameMapper that puts prefix in front of each name.
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
	case o.WatchdogLease < 10*time.Millisecond: // a third must be enough for a renewal
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

// grantLease returns the lease of a lock granted to a waiter with Watchdog, until the first
// renewal. The lease is short, because others wait for its end if the process of the new owner is
// stopped. But if the lease ends before waiters ask by themselves, each of their processes needs a
// message. So grantLease extends a slightly shorter lease to that time.
func (o Options) grantLease() time.Duration {
	lease := min(o.WatchdogLease, max(o.WatchdogLease/10, time.Second))
	if lease >= 3*time.Second {
		lease = max(lease, longestPause)
	}
	return lease
}
