package chaos

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"holdfast/integration"
	"holdfast/integration/history"
)

// What all runs have in common. They are short, so that much happens in little time, and far enough from each other on a
// machine that is busy.
const (
	usualLease  = 2 * time.Second // of the watchdog
	command     = 500 * time.Millisecond
	slack       = time.Second // how late things may be while there are faults
	brief       = slack / 2   // and while there are none
	wakeUp      = time.Second
	longestPark = 5 * time.Second // of a waiter, until it looks for itself
	longestWait = 3 * time.Second
)

// Scenario is a topology, locks, and the faults that they have to bear.
type Scenario struct {
	Name     string
	Topology integration.Topology
	Variants []integration.Variant
	Kinds    []history.Kind
	Faults   []Fault
	// Peace is the longest time between faults, in which locks have to be quick again.
	Peace time.Duration
	// Quiet says that now and then there is so much peace that all must be well again.
	Quiet bool
	// Durable says that servers know all that they knew when they are started again.
	Durable bool
	// Lease is that of the watchdog, and the longest of all. Defaults to 2 s.
	Lease time.Duration
	// Wait is the longest that a worker waits for a lock. Defaults to 3 s.
	Wait time.Duration
	// Burst has all workers ask at the same moments, so far apart, if it is not 0. After a burst nobody comes who would make
	// up for a wake-up that was missed.
	Burst time.Duration
	// Copies is how many locks there are of a kind, of which all that come in one burst want the same. Defaults to 1.
	Copies int
	// Impatient is how many workers of a process wait for milliseconds only, each for one kind of
	// lock. The others wait for at least a second, for any kind. There is one lock of each.
	Impatient int
	// Abandoned, if not 0, has the first workers of a burst take a lock, and the others wait for it
	// with leases of up to this long, half of which are never released.
	Abandoned time.Duration
	// Calm is the shortest time from one fault to the next.
	Calm time.Duration
	// Latency is how long everything takes in each direction, at all times.
	Latency time.Duration
	// Victims is how many of the processes are hit by faults of processes and of their networks. All of them if it is 0.
	Victims int
	// Processes and their workers; 3 and 3 if they are 0.
	Processes, Workers int
	// HandOver is that of the processes. ToAll if it is empty.
	HandOver HandOver
	// Program runs the client processes; the test binary itself if it is empty.
	Program string
}

// allKinds are the kinds of a single Redis.
var allKinds = []history.Kind{history.Plain, history.Fair, history.Fenced, history.Read, history.Write}

// Named returns the scenario of that name, and panics if there is none.
func Named(name string) Scenario {
	i := slices.IndexFunc(Scenarios, func(s Scenario) bool { return s.Name == name })
	if i < 0 {
		panic(fmt.Sprintf("chaos: no scenario %q", name))
	}
	return Scenarios[i]
}

func (s *Scenario) lease() time.Duration { return cmp.Or(s.Lease, usualLease) }

// brief returns how late things may be without faults; more if the callers keep the machine busy.
func (s *Scenario) brief() time.Duration { return s.busy(brief) }

// command returns how long a command may take; more likewise.
func (s *Scenario) command() time.Duration { return s.busy(command) }

func (s *Scenario) busy(d time.Duration) time.Duration {
	if s.Impatient > 0 {
		return 2 * d
	}
	return d
}

// locks are their names, by kind: two plain ones, for MultiLocks, and one of each other kind.
func (s *Scenario) locks() map[history.Kind][]string {
	names := map[history.Kind][]string{}
	for _, kind := range s.Kinds {
		switch kind {
		case history.Plain:
			names[kind] = []string{"plain-1", "plain-2"}
			if s.Impatient > 0 || s.Abandoned > 0 { // each lock has to have its crowd
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

// names are all of them, in order.
func (s *Scenario) names() []string {
	var names []string
	for _, some := range s.locks() {
		names = append(names, some...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Plays tells whether a fault of this name is played.
func (s *Scenario) Plays(fault string) bool {
	return slices.ContainsFunc(s.Faults, func(f Fault) bool { return f.Name == fault })
}

// Tries tells whether the locks in it can show that an invariant holds.
func (s *Scenario) Tries(invariant string) bool {
	switch invariant {
	case history.Fences:
		return slices.Contains(s.Kinds, history.Fenced)
	case history.Fairness: // between those that no fault hits, nor hit shortly before
		return slices.Contains(s.Kinds, history.Fair) && s.Victims > 0
	case history.WakeUps: // far from faults of those who wait, so elsewhere only now and then
		return len(s.Faults) == 0 || s.Abandoned > 0
	case history.Progress: // far from all faults
		return len(s.Faults) == 0 || s.Impatient > 0
	case history.Answers:
		return len(s.Faults) == 0
	case history.Kept: // see there for RedLocks
		return !slices.Equal(s.Kinds, []history.Kind{history.Quorum})
	default:
		return true
	}
}

// String is its name.
func (s *Scenario) String() string { return fmt.Sprintf("scenario %q", s.Name) }
