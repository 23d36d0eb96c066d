package history

import (
	"fmt"
	"slices"
)

// remains: at the end each lock that was used can be taken, at the latest one lease after the last fault is healed and the
// last call has returned; and nothing is left behind.
func (h *History) remains(bounds Bounds, verdict *Verdict) {
	free := map[string]Instant{}
	taken := map[string]bool{}
	for _, e := range h.Events {
		switch {
		case e.What == Free:
			free[e.Name] = e.At
		case e.What == Taken:
			taken[e.Name] = true
			verdict.breach(Breach{Invariant: Remains, At: e.At, Between: h.last(e.Name),
				Text: fmt.Sprintf("%q cannot be taken at the end: %s", e.Name, e.Error)})
		case e.What == Left:
			verdict.breach(Breach{Invariant: Remains, At: e.At, Text: "left behind: " + e.Error})
		case e.What == Ended && e.Error != "":
			verdict.breach(Breach{Invariant: Remains, At: e.At, Text: e.Process + " has left behind: " + e.Error})
		case e.What == Ended:
			verdict.Judged[Remains]++
		}
	}
	quiet := h.quiet()
	for name, parts := range h.names() {
		limit := bounds.Lease + bounds.Command + bounds.Slack
		if parts[0].Kind == Fair && h.placesLeft() {
			limit += lingering
		}
		verdict.Judged[Remains]++
		at, ok := free[name]
		switch {
		case taken[name]: // has been said
		case !ok:
			verdict.breach(Breach{Invariant: Remains, At: h.End, Between: h.last(name),
				Text: fmt.Sprintf("%q was not tried at the end", name)})
		case at.Sub(quiet) > limit:
			verdict.breach(Breach{Invariant: Remains, At: at, Between: h.last(name),
				Text: fmt.Sprintf("%q was free only %v after everything was quiet, later than %v", name, at.Sub(quiet), limit)})
		}
	}
}

// placesLeft tells whether places in the queue of a fair lock may have outlived those who had them: they were killed, or told to
// end, and so closed, while a fault was felt, and then nothing is sent again.
func (h *History) placesLeft() bool {
	return len(h.Killed) > 0 || slices.ContainsFunc(h.Faults, func(p Period) bool {
		return p.From <= h.Stopping && p.To >= h.Stopping
	})
}

// quiet is when the last fault was healed, the last process had gone and the last call had returned: no hold is taken or
// renewed any more.
func (h *History) quiet() (quiet Instant) {
	for _, e := range h.Events {
		switch e.What {
		case Started, Fault, Stopped, Queue, Free, Taken, Left: // nothing that a hold could come from
		default:
			quiet = max(quiet, e.At)
		}
	}
	return quiet
}

// last gives the last acquisition of the lock that may have left it taken.
func (h *History) last(name string) []*Acquisition {
	var last []*Acquisition
	for _, p := range h.names()[name] {
		if p.Outcome != Refused && p.Outcome != Failed && p.Release != Released {
			last = []*Acquisition{p.Acquisition}
		}
	}
	return last
}
