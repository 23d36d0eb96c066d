package demo

import (
	"cmp"
	"slices"
	"time"
)

// merge puts the events of all processes in the order of their time. They come through a pipe each, so that what
// happened first may arrive last.
type merge struct {
	pending []event
}

// patience is how long an event waits for earlier ones of other processes.
const patience = 100 * time.Millisecond

func (m *merge) add(e event) { m.pending = append(m.pending, e) }

// due removes and returns, in order, the events of at most now less patience.
func (m *merge) due(now time.Duration) []event {
	slices.SortStableFunc(m.pending, byTime)
	n, _ := slices.BinarySearchFunc(m.pending, now-patience, func(e event, t time.Duration) int {
		if e.At <= t {
			return -1
		}
		return 1
	})
	due := slices.Clone(m.pending[:n])
	m.pending = slices.Delete(m.pending, 0, n)
	return due
}

func byTime(a, b event) int { return cmp.Compare(a.At, b.At) }
