package history

import (
	"cmp"
	"slices"
	"sort"
)

// window is when one level of a hold began and ended: each at some instant between two known ones.
type window struct {
	part
	startFrom, startTo Instant
	endFrom, endTo     Instant
}

// windows returns the windows of the holds of one lock.
//
// Acquisitions that were not granted are left out, even those of unknown outcome: if there is an
// order with one that held the lock and lost it later, there is one without, because no call needs
// another owner to hold the lock. (Refusals might: see refusals.)
func (m *memory) windows(parts []part) []window {
	var windows []window
	for _, p := range granted(parts) {
		w := window{part: p, startFrom: p.Asked, startTo: p.Answered}
		w.endFrom, w.endTo = m.ends(p.Acquisition)
		windows = append(windows, w)
	}
	return windows
}

// narrow applies what follows from exclusion: if a hold that began by startTo cannot have come
// after another one, which ended at endFrom or later, it came before. So it ended before the other
// one began. Orders that were possible stay possible, and impossible ones stay impossible. But
// calls that waited for long no longer seem able to acquire the lock all the time, which would be a
// choice at each step of the search for an order.
func narrow(windows []window) {
	byStart := slices.Clone(windows)
	slices.SortFunc(byStart, func(a, b window) int { return cmp.Compare(a.startTo, b.startTo) })
	byEnd := slices.Clone(windows)
	// latest first
	slices.SortFunc(byEnd, func(a, b window) int { return cmp.Compare(b.endFrom, a.endFrom) })

	// The bounds that the first i set for a reader, and for any other.
	ends, starts := make([]extremes, len(windows)+1), make([]extremes, len(windows)+1)
	for i := range windows {
		ends[i+1], starts[i+1] = ends[i], starts[i]
		ends[i+1].add(byStart[i].part, byStart[i].endFrom)
		starts[i+1].add(byEnd[i].part, -byEnd[i].startTo)
	}
	for i := range windows {
		w := &windows[i]
		startTo, endFrom := w.startTo, w.endFrom
		before := sort.Search(len(byStart), func(i int) bool {
			return byStart[i].startTo >= endFrom
		})
		if end, ok := ends[before].other(w.part); ok {
			w.startFrom = min(max(w.startFrom, end), w.startTo) // not empty, even if too early
		}
		after := sort.Search(len(byEnd), func(i int) bool { return byEnd[i].endFrom <= startTo })
		if start, ok := starts[after].other(w.part); ok {
			w.endTo = max(min(w.endTo, -start), w.endFrom)
		}
	}
	for i := range windows { // no hold ends before it begins
		w := &windows[i]
		w.endFrom = max(w.endFrom, w.startFrom)
		w.endTo = max(w.endTo, w.endFrom)
	}
}

// extremes is the latest instant of all owners, and of those that do not only read, each with the
// latest of another owner.
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

// other returns the latest instant of a part that conflicts with p.
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
