package history

import (
	"cmp"
	"slices"
	"time"
)

// interval is a time from one instant to another.
type interval struct{ from, to Instant }

func (i interval) length() time.Duration { return i.to.Sub(i.from) }

// merged sorts intervals and joins those that overlap or touch.
func merged(intervals []interval) []interval {
	slices.SortFunc(intervals, func(a, b interval) int { return cmp.Compare(a.from, b.from) })
	var all []interval
	for _, p := range intervals {
		if last := len(all) - 1; last >= 0 && p.from <= all[last].to {
			all[last].to = max(all[last].to, p.to)
		} else {
			all = append(all, p)
		}
	}
	return all
}

// without returns the parts of intervals that lie outside of others. Both are merged.
func without(intervals, others []interval) []interval {
	var left []interval
	for _, p := range intervals {
		i, _ := slices.BinarySearchFunc(others, p.from, func(o interval, at Instant) int {
			return cmp.Compare(o.to, at)
		})
		for _, o := range others[i:] {
			if o.from >= p.to {
				break
			}
			if o.from > p.from {
				left = append(left, interval{p.from, o.from})
			}
			p.from = max(p.from, o.to)
		}
		if p.from < p.to {
			left = append(left, p)
		}
	}
	return left
}
