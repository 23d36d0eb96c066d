package demo

import (
	"cmp"
	"slices"
)

// What is on a screen beside scenes: the heading, the axis, the legend, a word about what does not fit, the verdict and a
// prompt.
const besides = 6

// linesOf is how many lines a scene takes: a blank one, its title, its cast, and one for the servers of its own.
func linesOf(s scene) int { return 2 + len(s.cast) + min(len(s.nodes), 1) }

// lowest is the height of a screen on which each scene fits.
func lowest(scenes []scene) (lines int) {
	for _, s := range scenes {
		lines = max(lines, besides+linesOf(s))
	}
	return lines
}

// onScreen are the scenes that fit on the screen, in their order. Those where something will happen still are preferred, and
// of them those with the largest casts: the small ones fill what is left.
func (l *live) onScreen() (fitting []scene) {
	room, chosen := l.height-besides, map[string]bool{}
	bySize := slices.Clone(l.scenes)
	slices.SortStableFunc(bySize, func(a, b scene) int { return cmp.Compare(linesOf(b), linesOf(a)) })
	for _, over := range []bool{false, true} {
		for _, s := range bySize {
			if lines := linesOf(s); l.isOver(s) == over && lines <= room {
				room -= lines
				chosen[s.lock] = true
			}
		}
	}
	for _, s := range l.scenes {
		if chosen[s.lock] {
			fitting = append(fitting, s)
		}
	}
	return fitting
}

// isOver tells whether nothing will happen in a scene any more.
func (l *live) isOver(s scene) bool {
	for _, p := range s.cast {
		if !l.over[p.Process] {
			return false
		}
	}
	return true
}
