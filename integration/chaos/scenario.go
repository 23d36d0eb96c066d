package chaos

import (
	"fmt"
	"slices"
	"time"

	"holdfast/integration/history"
)

// What all runs have in common. They are short, so that much happens in little time, and far enough from each other on a
// machine that is busy.
const (
	watchdogLease = 2 * time.Second
	command       = 500 * time.Millisecond
	slack         = 2 * time.Second
	longestPark   = 5 * time.Second // of a waiter, until it looks for itself
)

// Scenario is a topology, locks, and the faults that they have to bear.
type Scenario struct {
	Name     string
	Topology Topology
	Kinds    []history.Kind
	Faults   []Fault
	// Peace is the longest time between faults, in which locks have to be quick again.
	Peace time.Duration
	// Durable says that servers know all that they knew when they are started again.
	Durable bool
	// Processes and their workers; 3 and 3 if they are 0.
	Processes, Workers int
	// Program runs the client processes; the test binary itself if it is empty.
	Program string
}

// exclusive are the kinds of a single Redis.
var allKinds = []history.Kind{history.Plain, history.Fair, history.Fenced, history.Read, history.Write}

// names are those of the locks, by kind: two plain ones, for MultiLocks, and one of each other kind.
func (s *Scenario) locks() map[history.Kind][]string {
	names := map[history.Kind][]string{}
	for _, kind := range s.Kinds {
		switch kind {
		case history.Plain:
			names[kind] = []string{"plain-1", "plain-2"}
		case history.Read, history.Write:
			names[kind] = []string{"readwrite"}
		default:
			names[kind] = []string{string(kind)}
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

// String is its name.
func (s *Scenario) String() string { return fmt.Sprintf("scenario %q", s.Name) }
