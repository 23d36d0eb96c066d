package chaos

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"holdfast/integration"
	"holdfast/integration/history"
)

// The times of all runs. They are short, so that much happens in little time, and far enough apart
// for a busy machine.
const (
	usualLease   = 2 * time.Second // of the watchdog
	command      = 500 * time.Millisecond
	slack        = time.Second     // how late things may be during faults
	brief        = slack / 2       // and without faults
	wakeUp       = time.Second     // and as many roundTrips
	roundTrips   = 5               // of a waiter: it asks, dials (two), subscribes, and asks again
	pollInterval = 5 * time.Second // of a waiter
	longestWait  = 3 * time.Second
)

// Scenario is a topology, locks, and the faults that they must survive.
type Scenario struct {
	Name     string
	Topology integration.Topology
	// Costs is how much more CPU it takes in virtual time than others do. Defaults to 1.
	Costs float64
	// OnlyVirtual reports that it is played in virtual time only, because it needs no process or
	// server of its own.
	OnlyVirtual bool
	Variants    []integration.Variant
	Kinds       []history.Kind
	Faults      []Fault
	// Peace is the longest time between faults, in which locks must be quick again.
	Peace time.Duration
	// Quiet reports that now and then the peace is long enough for everything to recover.
	Quiet bool
	// Durable reports that restarted servers have all their data.
	Durable bool
	// Lease is the watchdog's lease, the longest of all. Defaults to 2 s.
	Lease time.Duration
	// Wait is the longest wait of a worker. Defaults to 3 s.
	Wait time.Duration
	// Burst is the interval at which all workers ask at the same moment, if it is not 0. After a
	// burst no newcomer makes up for a missed wake-up.
	Burst time.Duration
	// Copies is how many locks of a kind there are. In one burst all workers want the same one.
	// Defaults to 1.
	Copies int
	// Impatient is how many workers of a process wait for milliseconds only, each for one kind of
	// lock. The others wait for at least a second, for any kind. There is one lock of each.
	Impatient int
	// Moment is the longest time that such a worker has a lock, but for a few. Waits and holds then
	// end at whole milliseconds, so that some waits end as the lock is passed on. Defaults to 2 ms and
	// to any time.
	Moment time.Duration
	// Abandoned, if not 0, has the openers of a burst acquire a lock. The others wait for it with
	// leases of up to this long, and never release half of them.
	Abandoned time.Duration
	// Wander has workers wander instead of doing sections, see worker.wander.
	Wander bool
	// Kept is how many locks each process keeps, under names of its own, for several leases at a
	// time.
	Kept int
	// Storm is how many calls without wait each process begins in a second, beside its workers,
	// each for one of as many locks of its own.
	Storm int
	// Pool is how many connections a process has for calls that wait for replicas. A storm of calls
	// that take their whole time uses all of them up. Defaults to what rueidis defaults to.
	Pool int
	// SyncReplicas is rlock.Options.SyncReplicas.
	SyncReplicas int
	// Shortest is how long a run must last to show what it is for.
	Shortest time.Duration
	// Calm is the shortest time from one fault to the next.
	Calm time.Duration
	// Latency is the delay in each direction, at all times.
	Latency time.Duration
	// Far reports that a round trip takes much of a lease. No shorter leases and waits are drawn then,
	// clients have one connection each, and the server knows the scripts.
	Far bool
	// Command is how long a command may take. Defaults to 500 ms.
	Command time.Duration
	// Victims is how many of the processes are hit by faults of processes and of their networks. 0
	// is all.
	Victims int
	// Pace is the longest pause of a worker between sections, and mostly within one. Defaults to
	// 20 ms.
	Pace time.Duration
	// Processes and the Workers of each. Both default to 3.
	Processes, Workers int
	// HandOver is how the processes hand over. Defaults to ToAll.
	HandOver HandOver
	// Program runs the client processes. Defaults to the test binary.
	Program string
}

// allKinds are the kinds of a single Redis.
var allKinds = []history.Kind{history.Plain, history.Fair, history.Fenced, history.Read,
	history.Write}

// Named returns the scenario of that name, and panics if there is none.
func Named(name string) Scenario {
	i := slices.IndexFunc(Scenarios, func(s Scenario) bool { return s.Name == name })
	if i < 0 {
		panic(fmt.Sprintf("chaos: no scenario %q", name))
	}
	return Scenarios[i]
}

func (s *Scenario) lease() time.Duration { return cmp.Or(s.Lease, usualLease) }

// brief returns how late things may be without faults: twice as much if the callers keep the
// machine busy.
func (s *Scenario) brief() time.Duration { return s.busy(brief) }

// command returns how long a command may take, with the same exception.
func (s *Scenario) command() time.Duration { return s.busy(cmp.Or(s.Command, command)) }

func (s *Scenario) busy(d time.Duration) time.Duration {
	if s.Impatient > 0 {
		return 2 * d
	}
	return d
}

// locks returns the names of the locks by kind: two plain ones, for MultiLocks, one for Read and
// Write, and Copies of each other kind.
func (s *Scenario) locks() map[history.Kind][]string {
	names := map[history.Kind][]string{}
	for _, kind := range s.Kinds {
		switch kind {
		case history.Plain:
			names[kind] = []string{"plain-1", "plain-2"}
			if s.Impatient > 0 || s.Abandoned > 0 { // each lock needs its crowd
				names[kind] = names[kind][:1]
			}
		case history.Read, history.Write:
			names[kind] = []string{"readwrite"}
		default:
			for i := range max(s.Copies, 1) {
				names[kind] = append(names[kind], fmt.Sprintf("%s-%d", kind, i+1))
			}
		}
	}
	return names
}

// names returns the names of all locks, sorted.
func (s *Scenario) names() []string {
	var names []string
	for _, some := range s.locks() {
		names = append(names, some...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// kept returns the names of the locks that a process keeps. The first is the forbidden one of
// KeyForbidden.
func (s *Scenario) kept(process string) []string {
	var names []string
	for i := range s.Kept {
		names = append(names, fmt.Sprintf("%d-kept-%s", i, process))
	}
	return names
}

// storm returns the names of the locks that a process storms.
func (s *Scenario) storm(process string) []string {
	var names []string
	for i := range s.Storm {
		names = append(names, fmt.Sprintf("storm-%s-%d", process, i))
	}
	return names
}

// Plays reports whether a fault of this name is played.
func (s *Scenario) Plays(fault string) bool {
	return slices.ContainsFunc(s.Faults, func(f Fault) bool { return f.Name == fault })
}

// CanBeVirtual reports whether it can be played in a bubble.
func (s *Scenario) CanBeVirtual() bool { return s.Topology.Independent() > 0 }

// Share returns how much of the virtual time is for this scenario.
func (s *Scenario) Share() float64 { return 1 / cmp.Or(s.Costs, 1) }

// Tries reports whether the scenario's locks can show that an invariant holds.
func (s *Scenario) Tries(invariant string) bool {
	switch invariant {
	case history.Fences:
		return slices.Contains(s.Kinds, history.Fenced)
	case history.Fairness: // between waiters that no fault hits, not even shortly before
		return slices.Contains(s.Kinds, history.Fair) && s.Victims > 0
	case history.WakeUps: // far from faults of the waiters, so elsewhere only now and then
		return len(s.Faults) == 0 && !s.Far || s.Abandoned > 0
	case history.Progress: // far from all faults
		return len(s.Faults) == 0 && !s.Far || s.Impatient > 0
	case history.Answers:
		return !slices.ContainsFunc(s.Faults, func(f Fault) bool {
			return !slices.Contains(f.Spares, history.Answers)
		})
	case history.Kept: // see there for RedLocks
		return !slices.Equal(s.Kinds, []history.Kind{history.Quorum})
	default:
		return true
	}
}

// String returns the scenario's name.
func (s *Scenario) String() string { return fmt.Sprintf("scenario %q", s.Name) }
