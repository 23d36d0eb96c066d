package demo

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// scene is a few processes with one lock of their own. It is data: see [scenes].
type scene struct {
	lock, title string
	cast        []part
	nodes       []string     // the scene's own servers, embedded so that cues can stop them
	cues        []cue        // each is given once
	times       map[kind]int // how often something happens, in all
	promises    []promise
}

// part is what a process is told before it connects: its name, its lock, and what it does.
type part struct {
	Process string `json:"process"`
	Lock    string `json:"lock"`   // as shown
	Type    string `json:"type"`   // of the lock; "" is reentrant
	Prefix  string `json:"prefix"` // of all keys
	Server  server `json:"server"`

	// Nodes are the servers of a lock over a quorum. Everything else is on Server.
	Nodes []server `json:"nodes,omitempty"`
	// Accounts are the two that are locked together. The first one pays.
	Accounts []string `json:"accounts,omitempty"`

	// Sections are what it does, one after the other.
	Sections []section `json:"sections"`

	// Wait, Lease and WatchdogLease are those of package rlock.
	Wait          time.Duration `json:"wait"`
	Lease         time.Duration `json:"lease"`
	WatchdogLease time.Duration `json:"watchdogLease"`

	// Unlocked gives each process a lock of its own. Everything else stays, also the checks.
	Unlocked bool `json:"unlocked"`
}

// section is a pause, and then a stay under the lock. Nest acquires it twice.
type section struct {
	Before time.Duration `json:"before"`
	Inside time.Duration `json:"inside"`
	Nest   bool          `json:"nest"`
}

// untilCue is a pause that a cue ends.
const untilCue time.Duration = -1

// The types of locks besides the reentrant one. Reading and writing are modes of one lock.
const (
	fair       = "fair"
	reading    = "read"
	writing    = "write"
	several    = "multi" // a MultiLock of fair locks, one for each account
	overQuorum = "red"   // a RedLock over the nodes
)

// names returns the names in Redis of the locks of the part.
func (p part) names() (names []string) {
	names = []string{p.Lock}
	if p.Type == several {
		names = slices.Clone(p.Accounts)
	}
	for i := range names {
		names[i] = p.Prefix + names[i]
		if p.Unlocked {
			names[i] += "/" + p.Process
		}
	}
	return names
}

// cue has the stage do something once certain events have happened: "olga queued", or the second
// time "walt left 2"; several are separated by ", ". Do is a verb and whom it concerns: "go" ends
// the pause of processes, "kill" kills them, "stop" stops servers.
type cue struct {
	when  string
	after time.Duration
	do    string
}

// promise is a story: events that must happen in this order, separated by ", ". From the first to
// the last it takes at least and at most so long; 0 is no bound.
type promise struct {
	story       string
	least, most time.Duration
}

// broken returns what is not as promised, or "". history is ordered by time.
func (p promise) broken(history []event) string {
	var first, last event
	rest := history
	for i, want := range strings.Split(p.story, ", ") {
		n := slices.IndexFunc(rest, func(e event) bool { return e.name() == want })
		if n < 0 {
			return fmt.Sprintf("%q is missing in: %s", want, p.story)
		}
		if last, rest = rest[n], rest[n+1:]; i == 0 {
			first = last
		}
	}
	switch took := last.At - first.At; {
	case took < p.least:
		return fmt.Sprintf("%s: %s, too soon: at least %s", p.story, brief(took), brief(p.least))
	case p.most > 0 && took > p.most:
		return fmt.Sprintf("%s: %s, too late: at most %s", p.story, brief(took), brief(p.most))
	}
	return ""
}
