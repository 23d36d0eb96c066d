package demo

import (
	"cmp"
	"slices"
	"time"
)

// merge orders the events of all processes by time. Each process has a pipe of its own, so that
// what happened first may arrive last.
type merge struct {
	pending []event
}

// mergeDelay is how long an event waits for earlier ones of other processes.
const mergeDelay = 100 * time.Millisecond

func (m *merge) add(e event) { m.pending = append(m.pending, e) }

// due removes the events that happened mergeDelay or more before now, and returns them in order.
func (m *merge) due(now time.Duration) []event {
	slices.SortStableFunc(m.pending, byTime)
	n, _ := slices.BinarySearchFunc(m.pending, now-mergeDelay, func(e event, t time.Duration) int {
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
