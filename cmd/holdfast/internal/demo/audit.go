package demo

import (
	"slices"
	"time"
)

// section is one stay of a process under a lock, from events alone. What the locks say about themselves is no evidence.
type section struct {
	process string
	lock    string
	from    time.Duration // a moment after the lock was acquired
	to      time.Duration // a moment before it was released
	alone   bool          // no evidence to the contrary
}

// sections finds the sections in a history, which is in the order of time, and marks those that were not alone. Evidence
// comes from two sources:
//
//   - time: two sections of one lock overlap;
//   - the marker in Redis: a process that enters finds the name of another that is alive, or one that leaves does not
//     find its own.
//
// A section whose process was killed ends with the process. One that has no end lasts for ever.
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
		delete(open, e.Process)
		return i
	}
	for _, e := range history {
		switch e.Kind {
		case entered:
			open[e.Process] = len(all)
			all = append(all, section{
				process: e.Process, lock: e.Lock, from: e.At, to: never,
				alone: e.Found == "" || gone[e.Found],
			})
		case leaving:
			if i := end(e); i >= 0 && e.Found != "" && e.Found != e.Process {
				all[i].alone = false
			}
		case killed:
			gone[e.Process] = true
			end(e)
		case ready, waiting, nested, unnested, left, gaveUp, failed, ended:
		}
	}
	for i := range all {
		for j := range all[:i] {
			a, b := &all[i], &all[j]
			if a.lock == b.lock && a.from < b.to && b.from < a.to {
				a.alone, b.alone = false, false
			}
		}
	}
	return all
}

// overlaps counts the sections that were not alone.
func overlaps(all []section) int {
	return len(slices.DeleteFunc(slices.Clone(all), func(s section) bool { return s.alone }))
}
