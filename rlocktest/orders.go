package rlocktest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// step is a lock that was waited for by a goroutine that held another one.
type step struct {
	outer, inner         string // the locks
	outerSite, innerSite string // where they were acquired; "" if not known
}

// orders has the locks by their names, with the first step from each to each other. A circle of
// steps means that goroutines may wait for each other for ever, even if they did not in this test.
type orders map[string]*ordered

// ordered is a lock with the steps to it. There are very many if a goroutine holds very many locks
// at once: to each from all that it has acquired before. So a step is a few bytes.
type ordered struct {
	name  string
	outer map[*ordered]*sites
	sites map[sites]*sites // each once
}

// sites says where the two locks of a step were acquired; "" if not known.
type sites struct{ outer, inner string }

func (o orders) add(s step) {
	if s.outer == s.inner {
		return
	}
	outer, inner := o.lock(s.outer), o.lock(s.inner)
	if inner.outer[outer] != nil {
		return
	}
	at := sites{s.outerSite, s.innerSite}
	known := inner.sites[at]
	if known == nil {
		known = new(sites)
		*known = at
		inner.sites[at] = known
	}
	inner.outer[outer] = known
}

// lock returns the lock of a name.
func (o orders) lock(name string) *ordered {
	l := o[name]
	if l == nil {
		l = &ordered{name, make(map[*ordered]*sites), make(map[sites]*sites)}
		o[name] = l
	}
	return l
}

// mostCircles is how many circles are described: nobody mends more at a time.
const mostCircles = 10

// circles describes circles of steps, the shortest first. No step is in two of them.
func (o orders) circles() (found []string) {
	all := make(graph)
	for _, inner := range o {
		for outer := range inner.outer {
			all[outer] = append(all[outer], inner)
		}
	}
	knots := all.knots()
	var circles [][]*ordered
	for len(knots) > 0 && len(circles) < mostCircles {
		circle := knots[0].shortest()
		circles = append(circles, circle)
		knots[0].remove(circle)
		knots = append(knots[1:], knots[0].knots()...)
	}
	slices.SortStableFunc(circles, func(a, b []*ordered) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), byName(a[0], b[0]))
	})
	for _, circle := range circles {
		found = append(found, describe(circle))
	}
	if len(knots) > 0 {
		found = append(found, fmt.Sprintf("there are more cycles than these %d", mostCircles))
	}
	return found
}

func describe(circle []*ordered) string {
	var text strings.Builder
	for i, outer := range circle {
		if i > 0 {
			text.WriteString("; ")
		}
		inner := circle[(i+1)%len(circle)]
		s := inner.outer[outer]
		fmt.Fprintf(&text, "%q%s, then %q%s", outer.name, at(s.outer), inner.name, at(s.inner))
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
