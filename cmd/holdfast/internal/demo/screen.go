package demo

import (
	"cmp"
	"slices"
)

// otherLines is the number of lines on a screen besides the scenes: the heading, the axis, the
// legend, the note of what does not fit, the verdict and a prompt.
const otherLines = 6

// linesOf returns the number of lines of a scene: a blank one, its title, its cast, and one for its
// own servers.
func linesOf(s scene) int { return 2 + len(s.cast) + min(len(s.nodes), 1) }

// minHeight returns the height of the lowest screen on which each scene fits.
func minHeight(scenes []scene) (lines int) {
	for _, s := range scenes {
		lines = max(lines, otherLines+linesOf(s))
	}
	return lines
}

// onScreen returns the scenes that fit on the screen, in order. Those where something will still
// happen are preferred, and of them those with the largest casts: the small ones fill the rest.
func (l *live) onScreen() (fitting []scene) {
	room, chosen := l.height-otherLines, map[string]bool{}
	bySize := slices.Clone(l.scenes)
	slices.SortStableFunc(bySize, func(a, b scene) int {
		return cmp.Compare(linesOf(b), linesOf(a))
	})
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

// isOver reports whether nothing will happen in a scene any more.
func (l *live) isOver(s scene) bool {
	for _, p := range s.cast {
		if !l.over[p.Process] {
			return false
		}
	}
	return true
}
