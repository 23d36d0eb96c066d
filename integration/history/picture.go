package history

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// The limits of a picture, which keep it fit for a browser.
const (
	maxOperations = 4000 // without a breach
	drawLimit     = 5 * time.Second
)

// Picture writes an HTML page that draws the operations on locks in time, the longest orders that
// were found for them, the holds and the faults. It shows each lock that was breached in the last
// Judge, shortly before and after its first breach. Without breaches it shows the last operations
// of each lock.
func (h *History) Picture(w io.Writer) error {
	m := h.memory(h.bounds)
	scenes := h.scenes()
	var pieces []piece
	for _, s := range scenes {
		pieces = append(pieces, s.piece(m))
	}
	if len(pieces) == 0 {
		all := h.pieces(h.bounds)
		for _, name := range slices.Sorted(maps.Keys(all)) {
			pieces = append(pieces, joined(all[name], maxOperations/len(all)))
		}
	}

	partitions := make([][]porcupine.Operation, 0, len(pieces))
	from, to := h.End, h.Start
	for _, p := range pieces {
		drawn := p.drawn(h.Start)
		partitions = append(partitions, drawn)
		for _, o := range drawn {
			from, to = min(from, h.Start+Instant(o.Call)), max(to, h.Start+Instant(o.Return))
		}
	}
	lanes(partitions)

	model := model
	model.Partition = func([]porcupine.Operation) [][]porcupine.Operation { return partitions }
	_, info := porcupine.CheckOperationsVerbose(model, nil, drawLimit)
	info.AddAnnotations(slices.Concat(h.marks(scenes), h.annotations(from, to), h.holds(scenes)))
	if err := porcupine.Visualize(model, info, w); err != nil {
		return fmt.Errorf("history: %w", err)
	}
	return nil
}

// joined joins the last pieces to one, with about as many operations.
func joined(pieces []piece, operations int) piece {
	last := pieces[len(pieces)-1]
	for _, p := range slices.Backward(pieces[:len(pieces)-1]) {
		if len(p.operations)+len(last.operations) > operations {
			break
		}
		last = piece{name: p.name, before: p.before,
			operations: slices.Concat(p.operations, last.operations)}
	}
	return last
}

// drawn returns the piece's operations, with instants relative to start. A first operation brings
// the lock into the state before the piece, because a picture has one model for all.
func (p piece) drawn(start Instant) []porcupine.Operation {
	operations := slices.Clone(p.operations)
	for i := range operations {
		operations[i].Call -= int64(start)
		operations[i].Return -= int64(start)
	}
	first := operations[0].Call - 1
	opening := step{verb: begin, before: &p.before, name: p.name}
	if p.open {
		opening.verb = open
	}
	return slices.Insert(operations, 0,
		porcupine.Operation{Input: opening, Call: first, Return: first})
}

// lanes spreads the operations over lines on which none overlap. Each process has its own lines,
// the same in all partitions.
func lanes(partitions [][]porcupine.Operation) {
	type lane struct{ process, number any }
	numbers := map[lane]int{}
	for _, operations := range partitions {
		ends := map[string][]int64{} // ends of the last operation on each line, by process
		for i := range operations {
			o := &operations[i]
			process := ""
			if a := o.Input.(step).part.Acquisition; a != nil {
				process = a.Process
			}
			number := slices.IndexFunc(ends[process], func(end int64) bool { return end < o.Call })
			if number < 0 {
				number = len(ends[process])
				ends[process] = append(ends[process], 0)
			}
			ends[process][number] = o.Return
			id, known := numbers[lane{process, number}]
			if !known {
				id = len(numbers)
				numbers[lane{process, number}] = id
			}
			o.ClientId = id
		}
	}
}

// annotations returns the faults between two instants.
func (h *History) annotations(from, to Instant) []porcupine.Annotation {
	var faults []porcupine.Annotation
	for _, p := range h.Faults {
		if p.From > to || p.To < from {
			continue
		}
		text := p.Fault
		if len(p.Processes) > 0 {
			text += fmt.Sprint(" ", p.Processes)
		}
		faults = append(faults, porcupine.Annotation{
			Tag:             "faults",
			Start:           int64(max(p.From, from) - h.Start),
			End:             int64(min(p.To, to) - h.Start),
			Description:     text,
			Details:         map[bool]string{true: "the servers may forget"}[p.Forgets],
			BackgroundColor: "#ffaaaa",
		})
	}
	slices.SortFunc(faults, func(a, b porcupine.Annotation) int {
		return cmp.Compare(a.Start, b.Start)
	})
	return faults
}
