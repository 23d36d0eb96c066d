package demo

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"holdfast/rlock"
)

// story tells events in words. It keeps track of who holds and who waits, and of what is worth
// judging. Events are told in the order of time.
type story struct {
	print  func(line string)
	actors []*actor
	free   map[string]event // by lock: how it was let go; after SIGKILL it stays held for the lease

	wakeUp   time.Duration // the longest; not over a quorum, where a waiter may have to ask again
	takeover time.Duration // how long after SIGKILL a lock was passed on, at most
	faults                 // who was overtaken or misinformed
}

// actor is what the story knows of one process.
type actor struct {
	part
	state  state
	since  time.Duration // when its state began
	asked  time.Duration // when it last began to wait
	queued time.Duration // when it was known to be in the queue; 0 if it is not
	owner  string        // as Redis named it when it last held the lock
}

// often reports whether it goes without saying that the process waits and lets go.
func (a *actor) often() bool { return len(a.Sections) > 2 }

// state is what a process is doing with its lock.
type state int

const (
	idle state = iota
	waits
	holds
	dead // its lock or its place in the queue may still be kept
)

func newStory(scenes []scene, show func(line string)) *story {
	s := &story{print: show, free: map[string]event{}}
	for _, scene := range scenes {
		for _, p := range scene.cast {
			s.actors = append(s.actors, &actor{part: p})
		}
	}
	return s
}

// tell prints a line for each event that matters.
func (s *story) tell(e event) {
	said := ""
	if e.Kind == died {
		said = "dies; the others are a quorum"
	}
	for _, a := range s.actors {
		if a.Process == e.Process {
			said = s.apply(a, e)
		}
	}
	if said != "" {
		s.print(fmt.Sprintf("%7.3f s  %-9s %-5s %s", e.At.Seconds(), e.Lock, e.Process, said))
	}
}

// apply records an event of an actor, and returns it in words; "" if it is not worth a line.
func (s *story) apply(a *actor, e event) string {
	was, stayed := a.state, e.At-a.since
	become := func(next state) { a.state, a.since = next, e.At }
	switch e.Kind {
	case waiting:
		become(waits)
		a.asked = e.At
		return s.waits(a)
	case queued:
		if a.state != waits {
			return "" // it has the lock by now
		}
		a.queued = e.At
		if a.Type == writing {
			return "comes first from now on: new readers step back"
		}
		return fmt.Sprintf("queues up for up to %s: %s", brief(a.Wait), names(s.queue(e.Lock)))
	case entered:
		said := cmp.Or(map[string]string{reading: "reads", writing: "writes", leading: "leads",
			onceKey: "runs the function"}[a.Type], "holds")
		if e.Shared {
			said += s.who(" with ", e.Lock, holds)
		}
		said += s.handover(a, e)
		become(holds)
		a.owner = e.Owner
		return said + s.who("; waiting: ", e.Lock, waits)
	case nested:
		return "acquires it again (nested)"
	case leaving:
		become(idle)
		s.free[e.Lock] = e
		if a.often() {
			return ""
		}
		switch a.Type {
		case onceKey:
			return "returns a result after " + brief(stayed)
		case leading:
			return "resigns" + s.after(a, stayed)
		}
		return "lets go" + s.after(a, stayed)
	case served:
		become(idle)
		return "gets the result of " + e.By
	case gaveUp:
		become(idle)
		a.queued = 0
		said := "gives up after " + brief(stayed)
		for _, h := range s.actors {
			if h.owner == e.Owner && h.state == holds && 0 < e.TTL &&
				e.TTL <= max(time.Duration(h.Lease), watchdogLease) {
				return fmt.Sprintf("%s: %s holds it for another %s", said, h.Process, brief(e.TTL))
			}
		}
		s.fault("%s: %s heard of holder %q, %s", e.Lock, e.Process, e.Owner, brief(e.TTL))
		return said
	case killed:
		become(dead)
		if was == waits {
			return "is killed in the queue (SIGKILL)" + s.who("; waiting: ", e.Lock, waits)
		}
		s.free[e.Lock] = e
		return "is killed (SIGKILL)" + s.after(a, stayed) +
			s.who("; waiting: ", e.Lock, waits)
	case failed:
		return "fails: " + e.Error
	}
	return ""
}

// after returns how long a holder stayed, in words, and how many leases that is if it is several.
func (s *story) after(a *actor, stayed time.Duration) string {
	said := " after " + brief(stayed)
	if leases := stayed / watchdogLease; a.Lease == rlock.Watchdog && leases > 1 {
		said += fmt.Sprintf(", %d leases of %s", leases, brief(watchdogLease))
	}
	return said
}

// waits returns whether and how long a process waits, in words; "" if that goes without saying, or
// is said once it is in the queue.
func (s *story) waits(a *actor) string {
	switch queue := names(s.queue(a.Lock)); {
	case a.often(), a.Type == fair, s.who("", a.Lock, holds) == "":
		return ""
	case a.Type == leading:
		return "stands for election"
	case a.Type == reading && queue != "":
		return "steps back for " + queue
	default:
		return "waits, for up to " + brief(a.Wait)
	}
}

// handover returns how the lock came to an actor, in words, and keeps what is worth judging. It is
// "" for the first holder, and for one that began to wait later.
func (s *story) handover(a *actor, e event) string {
	a.queued = 0
	var past []*actor
	for _, first := range s.queue(a.Lock) {
		switch {
		case first.queued > a.asked:
		case first.state == dead:
			first.queued, past = 0, append(past, first)
		default:
			s.fault("%s: %s got in before %s, who was queued already", a.Lock, a.Process,
				first.Process)
		}
	}
	from, ok := s.free[e.Lock]
	if !ok || a.state != waits || a.since > from.At {
		return ""
	}
	took := e.At - from.At
	said := fmt.Sprintf(", %s after %s ", brief(took), from.Process)
	switch {
	case from.Kind == killed:
		s.takeover = max(s.takeover, took)
		return said + "was killed"
	case len(past) > 0:
		return said + "released, past " + names(past) + ", who is dead"
	case a.Type != overQuorum:
		s.wakeUp = max(s.wakeUp, took)
	}
	return said + "released"
}

// queue returns the processes queued for a lock, first come first.
func (s *story) queue(lock string) []*actor {
	queue := s.some(func(a *actor) bool { return a.Lock == lock && a.queued > 0 })
	slices.SortFunc(queue, func(a, b *actor) int { return cmp.Compare(a.queued, b.queued) })
	return queue
}

// who returns prefix and the names of the processes that are in this state with a lock; "" if none.
func (s *story) who(prefix, lock string, state state) string {
	some := s.some(func(a *actor) bool { return a.Lock == lock && a.state == state })
	if len(some) == 0 {
		return ""
	}
	return prefix + names(some)
}

// some returns the actors that are like that.
func (s *story) some(like func(*actor) bool) []*actor {
	return slices.DeleteFunc(slices.Clone(s.actors), func(a *actor) bool { return !like(a) })
}

func names(actors []*actor) string {
	all := make([]string, len(actors))
	for i, a := range actors {
		all[i] = a.Process
	}
	return strings.Join(all, ", ")
}
