package history

import (
	"fmt"
	"slices"
)

// remains: at the end each lock that was used can be acquired, at the latest one lease after the
// last fault was healed and the last call returned. Nothing is left behind.
func (h *History) remains(bounds Bounds, verdict *Verdict) {
	free := map[string]Instant{}
	held := map[string]bool{}
	for _, e := range h.Events {
		switch {
		case e.What == Free:
			free[e.Name] = e.At
		case e.What == Held:
			held[e.Name] = true
			verdict.breach(Breach{Invariant: Remains, At: e.At, Between: h.last(e.Name),
				Text: fmt.Sprintf("%q cannot be acquired at the end: %s", e.Name, e.Error)})
		case e.What == Left:
			verdict.breach(Breach{Invariant: Remains, At: e.At, Text: "left behind: " + e.Error})
		case e.What == Ended && e.Error != "":
			verdict.breach(Breach{Invariant: Remains, At: e.At,
				Text: e.Process + " has left behind: " + e.Error})
		case e.What == Ended:
			verdict.Judged[Remains]++
		}
	}
	quiet := h.quiet()
	for name, parts := range h.names() {
		limit := bounds.Lease + bounds.Command + bounds.Slack
		if parts[0].Kind == Fair && h.registrationsLeft() {
			limit += lingering
		}
		verdict.Judged[Remains]++
		at, ok := free[name]
		switch {
		case held[name]: // reported above
		case !ok:
			verdict.breach(Breach{Invariant: Remains, At: h.End, Between: h.last(name),
				Text: fmt.Sprintf("%q was not tried at the end", name)})
		case at.Sub(quiet) > limit:
			verdict.breach(Breach{Invariant: Remains, At: at, Between: h.last(name),
				Text: fmt.Sprintf("%q was free only %v after everything was quiet, later than %v",
					name, at.Sub(quiet), limit)})
		}
	}
}

// registrationsLeft reports whether registrations in the queue of a fair lock may have outlived
// their waiters: these were killed, or told to end while a fault was felt, and a closed client does
// not retry.
func (h *History) registrationsLeft() bool {
	return len(h.Killed) > 0 || slices.ContainsFunc(h.Faults, func(p Period) bool {
		return p.From <= h.Stopping && p.To >= h.Stopping
	})
}

// quiet returns when the last fault was healed, the last process ended and the last call returned:
// no hold is acquired or renewed afterwards.
func (h *History) quiet() (quiet Instant) {
	for _, e := range h.Events {
		switch e.What {
		case Started, Fault, Stopped, Queue, Free, Held, Left: // no hold comes from these
		default:
			quiet = max(quiet, e.At)
		}
	}
	return quiet
}

// last returns the last acquisition of the lock that may still hold it.
func (h *History) last(name string) []*Acquisition {
	var last []*Acquisition
	for _, p := range h.names()[name] {
		if p.Outcome != Refused && p.Outcome != Failed && p.Release != Released {
			last = []*Acquisition{p.Acquisition}
		}
	}
	return last
}
