package demo

import (
	"math"
	"slices"
	"time"
)

// visit is the time that a process spent under a lock. It is derived from events alone: what the
// locks say about themselves is no evidence that all went well.
type visit struct {
	process, lock string
	from, to      time.Duration // from just after the lock was acquired to just before its release
	until         time.Duration // its hold was valid, as it says
	shared        bool          // others that share may be inside too
	alone         bool          // no evidence to the contrary
}

// audit returns the sections in a history, which is ordered by time, and marks those that were not
// alone by the markers in Redis: a process that enters or leaves finds another that is alive. A
// section whose process was killed ends with it. One without an end lasts for ever.
func audit(history []event) (all []visit) {
	open := map[string]int{}  // by process: index of its section
	gone := map[string]bool{} // processes that were killed
	for _, e := range history {
		alone := !slices.ContainsFunc(e.Found, func(name string) bool { return !gone[name] })
		gone[e.Process] = gone[e.Process] || e.Kind == killed
		if e.Kind == entered {
			open[e.Process] = len(all)
			all = append(all, visit{e.Process, e.Lock, e.At, math.MaxInt64, math.MaxInt64, e.Shared, alone})
		} else if i, inside := open[e.Process]; inside && (e.Kind == leaving || e.Kind == killed) {
			t := &all[i]
			t.to, t.alone = e.At, t.alone && alone
			if e.Until > 0 {
				t.until = e.Until
			}
			delete(open, e.Process)
		}
	}
	return all
}

// overlaps marks the sections that overlap another and should not. It returns how many were not
// alone, and how many of them no stall excuses: a process that stands still notices the end of its
// hold too late, but nobody gets in before that. A marker is excused if any outstayed its hold.
func overlaps(all []visit) (count, broken int) {
	for i := range all {
		b, isBroken, excused := &all[i], false, false
		for j := range all {
			a := &all[j]
			if a.lock != b.lock {
				continue
			}
			excused = excused || a.from <= b.from && a.until < a.to
			if i != j && (!a.shared || !b.shared) && a.from < b.to && b.from < a.to {
				b.alone = false
				isBroken = isBroken || a.from <= b.from && b.from < a.until
			}
		}
		if !b.alone {
			count++
		}
		if isBroken || !b.alone && !excused {
			broken++
		}
	}
	return count, broken
}
