package demo

import (
	"slices"
	"time"
)

// section is the time that a process spent under a lock. It is derived from events alone: what the
// locks say about themselves is no evidence that all went well.
type section struct {
	process string
	lock    string
	from    time.Duration // just after the lock was acquired
	to      time.Duration // just before it was released
	shared  bool          // others that share may be inside too
	alone   bool          // no evidence to the contrary
	until   time.Duration // its hold was valid, as it says; see broken
}

// sections returns the sections in a history, which is ordered by time, and marks those that were
// not alone. Evidence comes from two sources:
//
//   - time: two sections of one lock overlap, and do not both share;
//   - the marker in Redis: a process that enters finds the name of another that is alive, or one
//     that leaves does not find its own.
//
// A section whose process was killed ends with the process. One without an end lasts for ever.
func sections(history []event) []section {
	const never = time.Duration(1<<63 - 1)
	var all []section
	open := map[string]int{}   // by process: index of its section
	gone := map[string]bool{}  // processes that were killed
	end := func(e event) int { // returns the section that e ends, or -1
		i, ok := open[e.Process]
		if !ok {
			return -1
		}
		all[i].to = e.At
		if e.Until > 0 {
			all[i].until = e.Until
		}
		delete(open, e.Process)
		return i
	}
	for _, e := range history {
		switch e.Kind {
		case entered:
			open[e.Process] = len(all)
			all = append(all, section{
				process: e.Process, lock: e.Lock, from: e.At, to: never, until: never,
				shared: e.Shared,
				alone:  e.Found == "" || gone[e.Found],
			})
		case leaving:
			if i := end(e); i >= 0 && e.Found != "" && e.Found != e.Process {
				all[i].alone = false
			}
		case killed:
			gone[e.Process] = true
			end(e)
		case ready, waiting, queued, nested, unnested, left, gaveUp, failed, died, ended:
		}
	}
	for i := range all {
		for j := range all[:i] {
			a, b := &all[i], &all[j]
			if a.lock == b.lock && (!a.shared || !b.shared) && a.meets(b) {
				a.alone, b.alone = false, false
			}
		}
	}
	return all
}

// meets reports whether the sections overlap in time.
func (s *section) meets(other *section) bool { return s.from < other.to && other.from < s.to }

// overlaps returns the number of sections that were not alone.
func overlaps(all []section) int {
	return len(slices.DeleteFunc(slices.Clone(all), func(s section) bool { return s.alone }))
}

// overtaking is a process that was queued first, and another that asked later and got in before.
type overtaking struct{ lock, first, later string }

// overtakings returns who was overtaken in a history, which is ordered by time. A process that gave
// up or was killed no longer waits.
func overtakings(history []event) (found []overtaking) {
	asked := map[string]time.Duration{}
	var queue []event // those queued, first come first
	leaves := func(process string) {
		queue = slices.DeleteFunc(queue, func(e event) bool { return e.Process == process })
	}
	for _, e := range history {
		switch e.Kind {
		case waiting:
			asked[e.Process] = e.At
		case queued:
			queue = append(queue, e)
		case entered:
			leaves(e.Process)
			for _, first := range queue {
				if first.Lock == e.Lock && first.At < asked[e.Process] {
					found = append(found, overtaking{e.Lock, first.Process, e.Process})
				}
			}
		case gaveUp, killed:
			leaves(e.Process)
		case ready, nested, unnested, leaving, left, failed, died, ended:
		}
	}
	return found
}
