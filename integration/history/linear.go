package history

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// searchLimit is how long the search for an order may take for one lock.
const searchLimit = 20 * time.Second

// piece is a stretch of what happened to one lock. No operation lies partly in it.
type piece struct {
	name       string
	before     state // at its start
	open       bool  // the state before is unknown: the piece is a picture's scene
	operations []porcupine.Operation
}

// linearizable: there is an order of all that happened to a lock in which a perfect lock could have
// done it. The loss of a hold is an operation of its own, see History.ends; so is the loss of the
// last token by the servers.
func (h *History) linearizable(bounds Bounds, verdict *Verdict) {
	h.linearizableWithin(searchLimit, bounds, verdict)
	h.refusals(bounds, verdict)
}

// linearizableWithin searches for a limited time for each lock. Exceeding it is a breach, because
// the rest is unknown.
func (h *History) linearizableWithin(limit time.Duration, bounds Bounds, verdict *Verdict) {
	for name, pieces := range h.pieces(bounds) {
		deadline := time.Now().Add(limit)
		for _, p := range pieces {
			verdict.Judged[Linearizable] += len(p.operations)
			switch result := p.check(time.Until(deadline)); result {
			case porcupine.Ok:
			case porcupine.Illegal:
				verdict.breach(p.breach())
			default:
				verdict.breach(Breach{Invariant: Linearizable, At: Instant(p.operations[0].Call),
					Text: fmt.Sprintf("%q: not decided within %v", name, limit)})
			}
		}
	}
}

// check searches for an order.
func (p piece) check(limit time.Duration) porcupine.CheckResult {
	if limit <= 0 {
		return porcupine.Unknown
	}
	return porcupine.CheckOperationsTimeout(p.model(), p.operations, limit)
}

// model returns the model of a lock that starts in the state before the piece.
func (p piece) model() porcupine.Model {
	m := model
	m.Init = func() any { return p.before }
	return m
}

// breach names the operations that the longest order leaves out.
func (p piece) breach() Breach {
	_, info := porcupine.CheckOperationsVerbose(p.model(), p.operations, searchLimit)
	var longest []porcupine.Operation
	for _, order := range info.PartialLinearizationsOperations()[0] {
		if len(order) > len(longest) {
			longest = order
		}
	}
	placed := map[any]bool{}
	s := p.before
	for _, o := range longest {
		placed[o.Input] = true
		_, s = s.after(o.Input.(step))
	}
	b := Breach{Invariant: Linearizable, At: Instant(p.operations[0].Call)}
	text := ""
	for _, o := range p.operations {
		if placed[o.Input] {
			continue
		}
		if text == "" {
			b.At, text = Instant(o.Call), fmt.Sprint(o.Input)
		}
		if a := o.Input.(step).part.Acquisition; a != nil && !slices.Contains(b.Between, a) &&
			len(b.Between) < maxBetween {
			b.Between = append(b.Between, a)
		}
	}
	b.Text = fmt.Sprintf("%q: %d operations have no order that a lock allows; at most %d do, and "+
		"then not: %s, when it is %v",
		p.name, len(p.operations), len(longest), text, s)
	return b
}

// maxBetween is how many acquisitions a breach names at most.
const maxBetween = 4

// pieces cuts what happened to each lock where no operation is under way. The lock's state there
// follows from what went before, whatever its order. So each piece can be judged by itself, in a
// time that does not grow with the history.
func (h *History) pieces(bounds Bounds) map[string][]piece {
	m := h.memory(bounds)
	all := map[string][]piece{}
	for name, parts := range h.names() {
		windows := m.windows(parts)
		narrow(windows)
		operations := m.operations(windows)
		next := piece{name: name}
		var until int64
		for _, o := range operations {
			if len(next.operations) > 0 && o.Call > until {
				all[name] = append(all[name], next)
				next = piece{name: name, before: next.after()}
			}
			next.operations = append(next.operations, o)
			until = max(until, o.Return)
		}
		if len(next.operations) > 0 {
			all[name] = append(all[name], next)
		}
	}
	return all
}

// after returns the state in which the piece ends, if it has any order.
func (p piece) after() state {
	holders := map[owner]holder{}
	for _, held := range p.before.holders {
		holders[held.owner] = held
	}
	s := state{token: p.before.token, anyToken: p.before.anyToken}
	var granted, forgotten int64 // when the last token was granted, and may have been forgotten
	for _, o := range p.operations {
		one := o.Input.(step)
		change := 1
		switch one.verb {
		case forget:
			forgotten = max(forgotten, o.Return)
			continue
		case end:
			change = -1
		case acquire:
			if answered := int64(one.part.Answered); answered >= granted {
				granted, s.token, s.anyToken = answered, one.part.Token, one.anyToken
			}
		}
		by := one.part.owner()
		held := holders[by]
		held.owner = by
		if one.part.Kind == Read {
			held.reads += change
		} else {
			held.writes += change
		}
		holders[by] = held
	}
	s.anyToken = s.anyToken || forgotten > 0 && granted <= forgotten
	for _, by := range slices.SortedFunc(maps.Keys(holders), owner.compare) {
		if held := holders[by]; held.reads > 0 || held.writes > 0 {
			s.holders = append(s.holders, held)
		}
	}
	return s
}
