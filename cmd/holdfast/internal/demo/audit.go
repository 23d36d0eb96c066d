package demo

import (
	"slices"
	"time"
)

// stay is the time that a process spent under a lock. It is derived from events alone: what the
// locks say about themselves is no evidence that all went well.
type stay struct {
	process string
	lock    string
	from    time.Duration // just after the lock was acquired
	to      time.Duration // just before it was released
	shared  bool          // others that share may be inside too
	alone   bool          // no evidence to the contrary
	until   time.Duration // its hold was valid, as it says; see broken
}

// stays returns the sections in a history, which is ordered by time, and marks those that were not
// alone. Evidence comes from two sources:
//
//   - time: two sections of one lock overlap, and do not both share;
//   - the markers in Redis: a process that enters or leaves finds another that is alive.
//
// A section whose process was killed ends with the process. One without an end lasts for ever.
func stays(history []event) []stay {
	const never = time.Duration(1<<63 - 1)
	var all []stay
	open := map[string]int{}  // by process: index of its section
	gone := map[string]bool{} // processes that were killed
	alone := func(e event) bool {
		return !slices.ContainsFunc(e.Found, func(name string) bool { return !gone[name] })
	}
	for _, e := range history {
		i, inside := open[e.Process]
		switch e.Kind {
		case entered:
			open[e.Process] = len(all)
			all = append(all, stay{process: e.Process, lock: e.Lock, from: e.At, to: never,
				until: never, shared: e.Shared, alone: alone(e)})
			continue
		case killed:
			gone[e.Process] = true
		case leaving:
		default:
			continue
		}
		if inside {
			all[i].to = e.At
			all[i].alone = all[i].alone && alone(e)
			if e.Until > 0 {
				all[i].until = e.Until
			}
			delete(open, e.Process)
		}
	}
	for i := range all {
		for j := range all[:i] {
			a, b := &all[i], &all[j]
			if a.excludes(b) && a.from < b.to && b.from < a.to {
				a.alone, b.alone = false, false
			}
		}
	}
	return all
}

// excludes reports whether two sections must not overlap.
func (s *stay) excludes(other *stay) bool {
	return s.lock == other.lock && (!s.shared || !other.shared)
}

// overlaps returns the number of sections that were not alone.
func overlaps(all []stay) (n int) {
	for _, s := range all {
		if !s.alone {
			n++
		}
	}
	return n
}

// overtaking is a process that was queued first, and another that asked later and got in before.
type overtaking struct{ lock, first, later string }

// overtakings returns who was overtaken in a history, which is ordered by time. A process that gave
// up or was killed no longer waits.
func overtakings(history []event) (found []overtaking) {
	asked := map[string]time.Duration{}
	var queue []event // those queued, first come first
	for _, e := range history {
		switch e.Kind {
		case waiting:
			asked[e.Process] = e.At
		case queued:
			queue = append(queue, e)
		case entered, gaveUp, killed:
			queue = slices.DeleteFunc(queue, func(q event) bool { return q.Process == e.Process })
			for _, first := range queue {
				if e.Kind == entered && first.Lock == e.Lock && first.At < asked[e.Process] {
					found = append(found, overtaking{e.Lock, first.Process, e.Process})
				}
			}
		case ready, nested, leaving, left, failed, died, ended:
		}
	}
	return found
}
