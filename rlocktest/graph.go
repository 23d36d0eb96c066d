package rlocktest

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// graph has steps from locks to others.
type graph map[*ordered][]*ordered

// locks returns the locks in the order of their names, so that reports do not vary.
func (g graph) locks() []*ordered { return slices.SortedFunc(maps.Keys(g), byName) }

func byName(a, b *ordered) int { return cmp.Compare(a.name, b.name) }

// knots returns the strongly connected components of two locks or more, with the steps inside them:
// a circle is always inside of one, and each lock of one is in a circle.
func (g graph) knots() []graph {
	s := search{graph: g, numbers: make(map[*ordered]int)}
	for _, l := range g.locks() {
		if s.numbers[l] == 0 {
			s.visit(l)
		}
	}
	return s.knots
}

// search is Tarjan's, for the components of a graph.
type search struct {
	graph
	numbers map[*ordered]int // of the locks that were visited, from 1; done if in a component
	path    []*ordered       // those that are in no component yet
	knots   []graph
}

// done is the number of locks that are in a component.
const done = math.MaxInt

// visit visits a lock and all that can be reached from it, and returns the lowest number in sight.
func (s *search) visit(l *ordered) int {
	number, begin := len(s.numbers)+1, len(s.path)
	lowest := number
	s.numbers[l], s.path = number, append(s.path, l)
	for _, inner := range s.graph[l] {
		seen := s.numbers[inner]
		if seen == 0 {
			seen = s.visit(inner)
		}
		lowest = min(lowest, seen)
	}
	if lowest < number {
		return lowest
	}
	component := s.path[begin:]
	if len(component) > 1 {
		s.knots = append(s.knots, s.within(component))
	}
	for _, member := range component {
		s.numbers[member] = done
	}
	s.path = s.path[:begin]
	return done
}

// within returns the steps inside a component.
func (g graph) within(component []*ordered) graph {
	inside := make(graph, len(component))
	for _, l := range component {
		inside[l] = nil
	}
	for _, l := range component {
		for _, inner := range g[l] {
			if _, member := inside[inner]; member {
				inside[l] = append(inside[l], inner)
			}
		}
		slices.SortFunc(inside[l], byName)
	}
	return inside
}

// enough is after how many steps the search for a shorter circle ends.
const enough = 1_000_000

// shortest returns a shortest circle of a knot, or a short one if the knot is very large.
func (g graph) shortest() (circle []*ordered) {
	looked := 0
	for _, from := range g.locks() {
		if len(circle) == 2 || circle != nil && looked > enough {
			break
		}
		shorter, steps := g.around(from, len(circle))
		looked += steps
		if shorter != nil {
			circle = shorter
		}
	}
	return circle
}

// around returns a shortest circle through a lock, nil if it is not shorter than below (0: any
// circle will do), and how many steps were looked at.
func (g graph) around(from *ordered, below int) (circle []*ordered, looked int) {
	cameFrom := make(map[*ordered]*ordered)
	level := []*ordered{from}
	for length := 1; len(level) > 0 && (below == 0 || length < below); length++ {
		var next []*ordered
		for _, outer := range level {
			for _, inner := range g[outer] {
				looked++
				if inner == from {
					return way(cameFrom, from, outer), looked
				}
				if cameFrom[inner] == nil {
					cameFrom[inner] = outer
					next = append(next, inner)
				}
			}
		}
		level = next
	}
	return nil, looked
}

// way returns the locks from one to another.
func way(cameFrom map[*ordered]*ordered, from, to *ordered) []*ordered {
	locks := []*ordered{to}
	for to != from {
		to = cameFrom[to]
		locks = append(locks, to)
	}
	slices.Reverse(locks)
	return locks
}

// remove removes the steps of a circle.
func (g graph) remove(circle []*ordered) {
	for i, outer := range circle {
		inner := circle[(i+1)%len(circle)]
		g[outer] = slices.DeleteFunc(g[outer], func(l *ordered) bool { return l == inner })
	}
}
