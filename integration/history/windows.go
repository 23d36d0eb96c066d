package history

import (
	"cmp"
	"slices"
	"sort"
)

// window says when one level of a hold began and ended: each at some instant, which is only known to lie between two.
type window struct {
	part
	takeFrom, takeTo Instant
	endFrom, endTo   Instant
}

// windows of the holds of one lock.
//
// Acquisitions that were not granted are not among them, not even those of unknown outcome: if there is an order with one
// that took the lock and lost it later, there is one without, because nobody needs a lock to be held by somebody else.
// (Refusals might: see refusals.)
func (m *memory) windows(parts []part) []window {
	var windows []window
	for _, p := range granted(parts) {
		w := window{part: p, takeFrom: p.Asked, takeTo: p.Answered}
		w.endFrom, w.endTo = m.ends(p.Acquisition)
		windows = append(windows, w)
	}
	return windows
}

// narrow makes use of what follows from exclusion: if a hold that began by takeTo cannot have come after another one, which
// ended at endFrom or later, then it came before. So it ended before the other one began. No order of events that was
// possible before becomes impossible, and one that was impossible stays so; but those who waited for long no longer seem
// to have been able to take the lock all the time, which would be a choice at each step for whoever searches an order.
func narrow(windows []window) {
	byTake := slices.Clone(windows)
	slices.SortFunc(byTake, func(a, b window) int { return cmp.Compare(a.takeTo, b.takeTo) })
	byEnd := slices.Clone(windows)
	slices.SortFunc(byEnd, func(a, b window) int { return cmp.Compare(b.endFrom, a.endFrom) }) // the latest first

	// What the first i of them say to one that reads, and to any other.
	ends, takes := make([]extremes, len(windows)+1), make([]extremes, len(windows)+1)
	for i := range windows {
		ends[i+1], takes[i+1] = ends[i], takes[i]
		ends[i+1].add(byTake[i].part, byTake[i].endFrom)
		takes[i+1].add(byEnd[i].part, -byEnd[i].takeTo)
	}
	for i := range windows {
		w := &windows[i]
		takeTo, endFrom := w.takeTo, w.endFrom
		before := sort.Search(len(byTake), func(i int) bool { return byTake[i].takeTo >= endFrom })
		if end, ok := ends[before].other(w.part); ok {
			w.takeFrom = min(max(w.takeFrom, end), w.takeTo) // not empty, even if that makes it too early
		}
		after := sort.Search(len(byEnd), func(i int) bool { return byEnd[i].endFrom <= takeTo })
		if take, ok := takes[after].other(w.part); ok {
			w.endTo = max(min(w.endTo, -take), w.endFrom)
		}
	}
	for i := range windows { // and no hold ends before it begins
		w := &windows[i]
		w.endFrom = max(w.endFrom, w.takeFrom)
		w.endTo = max(w.endTo, w.endFrom)
	}
}

// extremes is the latest instant of any owner, and of any who does not only read; with the latest of another owner for each.
type extremes struct{ all, writing latest }

type latest struct {
	owner      owner
	at, next   Instant
	some, more bool
}

func (e *extremes) add(p part, at Instant) {
	e.all.add(p.owner(), at)
	if p.Kind != Read {
		e.writing.add(p.owner(), at)
	}
}

// other is the latest instant of one that conflicts with p.
func (e *extremes) other(p part) (Instant, bool) {
	l := &e.all
	if p.Kind == Read {
		l = &e.writing
	}
	if l.some && l.owner != p.owner() {
		return l.at, true
	}
	return l.next, l.more
}

func (l *latest) add(o owner, at Instant) {
	switch {
	case !l.some || at > l.at && o == l.owner:
		l.owner, l.at, l.some = o, at, true
	case o == l.owner:
	case at > l.at:
		l.next, l.more = l.at, true
		l.owner, l.at = o, at
	case !l.more || at > l.next:
		l.next, l.more = at, true
	}
}
