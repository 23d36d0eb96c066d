package history

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// History is what happened, in the order of time.
type History struct {
	Events       []Event
	Acquisitions []*Acquisition // in the order of Asked
	Faults       []Period
	Killed       map[string]Instant // when each killed process was killed
	// Stopping is when the processes were told to end; 0 if they were not.
	Stopping Instant
	// Start and End are the instants of the first and the last event.
	Start, End Instant

	levels   map[owner][]*Acquisition
	bounds   Bounds   // of the last Judge, for Picture
	breaches []Breach // found by it
}

// Period is a time during which something was faulty.
type Period struct {
	Fault       string
	Processes   []string // those that it concerned; none: all
	Forgets     bool     // the servers may have forgotten holds and tokens
	KeepsTokens bool     // but they kept tokens
	// Delays reports that commands sent meanwhile were executed when it was over, even if their
	// sender was gone.
	Delays bool
	// Spares are the invariants that it is no excuse for, except for the locks Except.
	Spares, Except []string
	// To is the last instant at which it may have been felt. This applies to Forgets as well: a
	// replaced master may go on to reply to clients that have not heard of it yet.
	From, To Instant
}

// Concerns reports whether the fault hit the process.
func (p Period) Concerns(process string) bool {
	return len(p.Processes) == 0 || slices.Contains(p.Processes, process)
}

// spares reports whether the fault is no excuse for a breach of an invariant by a.
func (p Period) spares(invariant string, a *Acquisition) bool {
	return slices.Contains(p.Spares, invariant) && !slices.ContainsFunc(a.Locks, func(l Lock) bool {
		return slices.Contains(p.Except, l.Name)
	})
}

// over returns when the fault ended. A kill never ends, but leaves nothing to do afterwards.
func (p Period) over() Instant {
	if p.Fault == string(Killed) {
		return p.From
	}
	return p.To
}

// New returns a history of events, which may come in any order. It returns an error if they do not
// fit together, which is the fault of their recorder and not of a lock.
func New(events []Event) (*History, error) {
	h := &History{Events: slices.Clone(events), Killed: map[string]Instant{},
		levels: map[owner][]*Acquisition{}}
	// Stable: those of one process at one instant are in their order.
	slices.SortStableFunc(h.Events, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	if len(h.Events) == 0 {
		return nil, errors.New("history: no events")
	}
	h.Start, h.End = h.Events[0].At, h.Events[len(h.Events)-1].At
	if err := h.pair(); err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	return h, nil
}

// pair combines the events of each acquisition and of each fault.
func (h *History) pair() error {
	type key struct {
		process string
		number  int
	}
	all := map[key]*Acquisition{}
	faults := map[string]int{} // index of a fault that goes on
	stops := map[string]int{}  // by process
	for _, e := range h.Events {
		h.End = max(h.End, e.Until)
		switch e.What {
		case Asked:
			a := &Acquisition{Process: e.Process, Number: e.Number, Root: cmp.Or(e.Root, e.Number),
				Locks: e.Locks, Wait: e.Wait, Lease: e.Lease, Fixed: e.Fixed, Asked: e.At}
			if len(a.Locks) == 0 {
				return fmt.Errorf("%v asks for no lock", a)
			}
			if _, twice := all[key{e.Process, e.Number}]; twice {
				return fmt.Errorf("%v was asked for twice", a)
			}
			all[key{e.Process, e.Number}] = a
			h.Acquisitions = append(h.Acquisitions, a)
			h.levels[a.owner()] = append(h.levels[a.owner()], a)
		case Granted, Refused, Unknown, Failed, Valid, Lost,
			Releasing, Released, NotHeld, Unconfirmed:
			a := all[key{e.Process, e.Number}]
			if a == nil {
				return fmt.Errorf("%s#%d: %s, but it was never asked for", e.Process, e.Number,
					e.What)
			}
			if err := a.add(e); err != nil {
				return err
			}
		case Fault:
			if _, on := faults[e.Fault]; on {
				return fmt.Errorf("fault %q begins twice", e.Fault)
			}
			faults[e.Fault] = len(h.Faults)
			h.Faults = append(h.Faults, Period{Fault: e.Fault, Processes: e.Processes,
				Forgets: e.Forgets, KeepsTokens: e.KeepsTokens, Delays: e.Delays,
				Spares: e.Spares, Except: e.Except, From: e.At})
		case Healed:
			i, on := faults[e.Fault]
			if !on {
				return fmt.Errorf("fault %q is healed and was not there", e.Fault)
			}
			delete(faults, e.Fault)
			h.Faults[i].To = max(e.At, e.Until)
		case Killed:
			if i, on := stops[e.Process]; on { // it was stopped, and never went on
				h.Faults[i].To = e.At
				delete(stops, e.Process)
			}
			if _, twice := h.Killed[e.Process]; twice {
				return fmt.Errorf("%s was killed twice", e.Process)
			}
			h.Killed[e.Process] = e.At
			h.Faults = append(h.Faults,
				Period{Fault: string(e.What), Processes: []string{e.Process}, From: e.At})
		case Stopped:
			if _, on := stops[e.Process]; !on {
				stops[e.Process] = len(h.Faults)
				h.Faults = append(h.Faults,
					Period{Fault: string(e.What), Processes: []string{e.Process}, From: e.At})
			}
		case Resumed:
			if i, on := stops[e.Process]; on {
				delete(stops, e.Process)
				h.Faults[i].To = e.At
			}
		case Stopping:
			h.Stopping = cmp.Or(h.Stopping, e.At)
		case Started, Ended, Queue, Free, Held, Left:
		default:
			return fmt.Errorf("unknown event %q", e.What)
		}
	}
	for i := range h.Faults {
		if h.Faults[i].To == 0 { // it went on until the end
			h.Faults[i].To = h.End
		}
	}
	return nil
}

// Encode writes the events as JSON lines.
func (h *History) Encode(w io.Writer) error {
	lines := json.NewEncoder(w)
	for _, e := range h.Events {
		if err := lines.Encode(e); err != nil {
			return err
		}
	}
	return nil
}

// Decode reads what Encode wrote.
func Decode(r io.Reader) ([]Event, error) {
	var events []Event
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return events, fmt.Errorf("history: line %d: %w", len(events)+1, err)
		}
		events = append(events, e)
	}
	return events, lines.Err()
}
