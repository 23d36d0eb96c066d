package demo

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"holdfast/rlock"
)

// scene is a few processes with one lock of their own. It is data: see [scenes].
type scene struct {
	lock, title string
	cast        []part
	queues      bool         // the lock promises an order to those that wait
	nodes       []string     // the scene's own servers, embedded so that cues can stop them
	cues        []cue        // each is given once
	times       map[kind]int // how often something happens, in all
	promises    []promise
}

// part is what a process is told before it connects: its name, its lock, and what it does.
type part struct {
	Process  string
	Lock     string   // as shown
	Names    []string // of the locks in Redis; that of the scene by default
	Type     string   // of the lock; "" is reentrant
	Data     string   // the key of a hash with what locks protect
	Server   server
	Nodes    []server // of a lock over a quorum
	Sections []section
	Wait     time.Duration
	Lease    rlock.Lease // as for package rlock; longWait by default
	Unlocked bool        // its lock is no other's; everything else stays, also the checks
}

// section is a pause, and then a stay under the lock. Nest acquires it twice.
type section struct {
	Before, Inside time.Duration
	Nest           bool
}

// untilCue is a pause that a cue ends.
const untilCue time.Duration = -1

// The types of locks besides the reentrant one. Reading and writing are modes of one lock.
const (
	fair       = "fair"
	reading    = "read"
	writing    = "write"
	several    = "multi" // a MultiLock of fair locks
	overQuorum = "red"   // a RedLock over the nodes
	onceKey    = "once"  // not a lock, but a key of package once
	leading    = "lead"  // a reentrant lock, acquired by package leader
)

// cue has the stage do something once all these events have happened: "olga queued, walt left 2",
// the latter twice. "go" ends the pause of processes, "kill" kills them, "stop" stops servers.
type cue struct {
	when  string
	after time.Duration
	what  string
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
		last, rest = rest[n], rest[n+1:]
		if i == 0 {
			first = last
		}
	}
	took := last.At - first.At
	if took < p.least || p.most > 0 && took > p.most {
		return fmt.Sprintf("%s: %s instead of %s to %s", p.story, brief(took), brief(p.least),
			brief(p.most))
	}
	return ""
}
