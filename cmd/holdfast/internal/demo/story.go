package demo

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// few is the number of sections up to which each one is told. With more, that the process waits and
// lets go goes without saying.
const few = 2

// story tells events in words. It keeps track of who holds and who waits. Events are told in the
// order of time.
type story struct {
	print  func(line string)
	actors []*actor
	free   map[string]release // by lock: its last release
	queue  []*actor           // of all locks, first come first
	nodes  map[string]int     // by lock: how many servers the scene began with
	alive  map[string]int     // by lock: how many of them are left

	wakeUp   time.Duration // the longest
	vote     time.Duration // the same over a quorum, where a woken waiter may have to ask again
	takeover time.Duration // how long after SIGKILL a lock was passed on
}

// actor is what the story knows of one process.
type actor struct {
	part
	state state
	since time.Duration // when its state began
	asked time.Duration // when it last began to wait
	owner string        // as Redis named it when it last held the lock
}

// state is what a process is doing with its lock.
type state string

const (
	idle   state = ""
	waits  state = "waits"
	holds  state = "holds"
	isDead state = "is dead" // its lock or its place in the queue may still be kept
)

// release is how a lock became free.
type release struct {
	at     time.Duration
	by     string
	killed bool // at is when the holder was killed; the lock stays held for the rest of its lease
}

func newStory(scenes []scene, print func(line string)) *story {
	s := &story{print: print, free: map[string]release{}, nodes: map[string]int{},
		alive: map[string]int{}}
	for _, scene := range scenes {
		for _, p := range scene.cast {
			s.actors = append(s.actors, &actor{part: p})
		}
		s.nodes[scene.lock], s.alive[scene.lock] = len(scene.nodes), len(scene.nodes)
	}
	return s
}

// tell prints a line for each event that matters.
func (s *story) tell(e event) {
	if said := s.apply(e); said != "" {
		s.print(fmt.Sprintf("%7.3f s  %-9s %-5s %s", e.At.Seconds(), e.Lock, e.Process, said))
	}
}

// apply records an event, and returns it in words; "" if it is not worth a line.
func (s *story) apply(e event) string {
	if e.Kind == died {
		s.alive[e.Lock]--
		return fmt.Sprintf("dies; %d of %d servers are left", s.alive[e.Lock], s.nodes[e.Lock])
	}
	n := slices.IndexFunc(s.actors, func(a *actor) bool { return a.Process == e.Process })
	if n < 0 {
		return ""
	}
	a := s.actors[n]
	was, stayed := a.state, e.At-a.since
	become := func(next state) { a.state, a.since = next, e.At }
	switch e.Kind {
	case waiting:
		become(waits)
		a.asked = e.At
		return s.waits(a)
	case queued:
		s.queue = append(s.queue, a)
		if a.Type == writing {
			return "comes first from now on: new readers step back"
		}
		return fmt.Sprintf("queues up for up to %s: %s", brief(a.Wait), list(s.queued(e.Lock)))
	case entered:
		s.leaveQueue(a)
		how := s.handover(a, e)
		others := s.those(e.Lock, holds)
		become(holds)
		a.owner = e.Owner
		verb := map[string]string{reading: "reads", writing: "writes"}[a.Type]
		if verb == "" {
			verb = "holds"
		}
		if e.Shared && len(others) > 0 {
			verb += " with " + list(others)
		}
		return verb + how + s.whoWaits(e.Lock)
	case nested:
		return "re-enters, level 2"
	case leaving:
		become(idle)
		s.free[e.Lock] = release{at: e.At, by: e.Process}
		if len(a.Sections) > few {
			return ""
		}
		said := "lets go after " + brief(stayed)
		if lease := a.WatchdogLease; lease > 0 {
			said += fmt.Sprintf(", %d leases of %s", stayed/lease, brief(lease))
		}
		return said
	case gaveUp:
		s.leaveQueue(a)
		become(idle)
		return fmt.Sprintf("gives up after %s: %s holds it for another %s", brief(stayed),
			s.processOf(e.Owner), brief(e.TTL))
	case killed:
		become(isDead)
		said := "is killed"
		switch was {
		case holds:
			s.free[e.Lock] = release{at: e.At, by: e.Process, killed: true}
		case waits:
			said += " in the queue"
		case idle, isDead:
		}
		return said + " (SIGKILL)" + s.whoWaits(e.Lock)
	case failed:
		return "fails: " + e.Error
	case ready, left, died, ended:
	}
	return ""
}

// waits returns whether and how long a process waits, in words; "" if that goes without saying, or
// is said once it is in the queue.
func (s *story) waits(a *actor) string {
	queue := s.queued(a.Lock)
	switch {
	case len(a.Sections) > few, a.Type == fair, len(s.those(a.Lock, holds)) == 0:
		return ""
	case a.Type == reading && len(queue) > 0:
		return "steps back for " + queue[0]
	}
	return "waits, for up to " + brief(a.Wait)
}

// handover returns how the lock came to an actor, in words, and keeps the longest times that it
// took. It is "" for the first holder, and for one that began to wait later.
func (s *story) handover(a *actor, e event) string {
	past := s.bury(a)
	from, ok := s.free[e.Lock]
	if !ok || a.state != waits || a.since > from.at {
		return ""
	}
	took := e.At - from.at
	switch said := fmt.Sprintf(", %s after %s ", brief(took), from.by); {
	case from.killed:
		s.takeover = took
		return said + "was killed"
	case len(past) > 0:
		return said + "let go, past " + list(past) + ", who is dead"
	case a.Type == overQuorum:
		s.vote = max(s.vote, took)
		return said + "let go"
	default:
		s.wakeUp = max(s.wakeUp, took)
		return said + "let go"
	}
}

// bury removes the dead ahead of an actor from the queue, and returns their names.
func (s *story) bury(a *actor) (names []string) {
	s.queue = slices.DeleteFunc(s.queue, func(other *actor) bool {
		passed := other.Lock == a.Lock && other.state == isDead && other.asked < a.asked
		if passed {
			names = append(names, other.Process)
		}
		return passed
	})
	return names
}

func (s *story) leaveQueue(a *actor) {
	s.queue = slices.DeleteFunc(s.queue, func(other *actor) bool { return other == a })
}

// queued returns the names of the processes queued for a lock, first come first.
func (s *story) queued(lock string) (names []string) {
	for _, a := range s.queue {
		if a.Lock == lock {
			names = append(names, a.Process)
		}
	}
	return names
}

// those returns the names of the processes that are in this state with a lock.
func (s *story) those(lock string, state state) (names []string) {
	for _, a := range s.actors {
		if a.Lock == lock && a.state == state {
			names = append(names, a.Process)
		}
	}
	return names
}

func (s *story) whoWaits(lock string) string {
	switch names := s.those(lock, waits); len(names) {
	case 0:
		return ""
	case 1:
		return "; " + names[0] + " waits"
	default:
		return "; " + list(names) + " wait"
	}
}

// processOf returns the process that Redis knows as owner; the owner itself if it is not of the
// demo.
func (s *story) processOf(owner string) string {
	for _, a := range s.actors {
		if a.owner == owner {
			return a.Process
		}
	}
	return owner
}

func list(names []string) string { return strings.Join(names, ", ") }
