package rlocktest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// step is a lock that was waited for by a goroutine that held another one.
type step struct {
	outer, inner         string // the locks
	outerSite, innerSite string // where they were acquired; "" if not known
}

// orders has the first step from each lock to each other, by the names of both. A circle of steps
// means that goroutines may wait for each other for ever, even if they did not in this test.
type orders map[string]map[string]step

func (o orders) add(s step) {
	if s.outer == s.inner {
		return
	}
	if o[s.outer] == nil {
		o[s.outer] = make(map[string]step)
	}
	if _, known := o[s.outer][s.inner]; !known {
		o[s.outer][s.inner] = s
	}
}

// circles describes circles of steps, the shortest first. No step is in two of them.
func (o orders) circles() (found []string) {
	told := make(map[step]bool)
	for {
		var shortest []step
		for _, outer := range slices.Sorted(maps.Keys(o)) {
			circle := o.path(outer, outer, told)
			if circle != nil && (shortest == nil || len(circle) < len(shortest)) {
				shortest = circle
			}
		}
		if shortest == nil {
			return found
		}
		for _, s := range shortest {
			told[s] = true
		}
		found = append(found, describe(shortest))
	}
}

// path returns the shortest way of at least one step that avoids some steps; nil if there is none.
func (o orders) path(from, to string, avoid map[step]bool) []step {
	cameBy := make(map[string]step)
	for next := []string{from}; len(next) > 0; next = next[1:] {
		for _, inner := range slices.Sorted(maps.Keys(o[next[0]])) {
			s := o[next[0]][inner]
			if _, visited := cameBy[inner]; visited || avoid[s] {
				continue
			}
			cameBy[inner] = s
			if inner != to {
				next = append(next, inner)
				continue
			}
			way := []step{s}
			for way[0].outer != from {
				way = slices.Insert(way, 0, cameBy[way[0].outer])
			}
			return way
		}
	}
	return nil
}

func describe(circle []step) string {
	var text strings.Builder
	for i, s := range circle {
		if i > 0 {
			text.WriteString("; ")
		}
		fmt.Fprintf(&text, "%q%s, then %q%s",
			s.outer, at(s.outerSite), s.inner, at(s.innerSite))
	}
	return text.String()
}

// at returns the site of a call in parentheses.
func at(site string) string {
	if site == "" {
		return ""
	}
	return " (" + site + ")"
}
