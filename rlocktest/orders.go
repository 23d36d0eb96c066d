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

// circles describes circles of steps: each lock that is in any is in one of them.
func (o orders) circles() []string {
	var found []string
	reported := make(map[string]bool)
	for _, lock := range slices.Sorted(maps.Keys(o)) {
		if reported[lock] {
			continue
		}
		if circle := o.path(lock, lock); circle != nil {
			found = append(found, describe(circle))
			for _, s := range circle {
				reported[s.outer] = true
			}
		}
	}
	return found
}

// path returns the shortest way of at least one step; nil if there is none.
func (o orders) path(from, to string) []step {
	cameBy := make(map[string]step)
	for next := []string{from}; len(next) > 0; next = next[1:] {
		steps := o[next[0]]
		for _, inner := range slices.Sorted(maps.Keys(steps)) {
			if _, visited := cameBy[inner]; visited {
				continue
			}
			cameBy[inner] = steps[inner]
			if inner != to {
				next = append(next, inner)
				continue
			}
			way := []step{steps[inner]}
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
