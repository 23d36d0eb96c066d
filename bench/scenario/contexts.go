package scenario

import (
	"context"
	"slices"

	"holdfast/bench/contest"
	"holdfast/bench/report"
)

// contexts names the contexts that callers pass to Lock and Unlock.
//
// A request handler's context can be cancelled, and clients treat it differently: rueidis pipelines
// its commands and watches it, and libraries that derive contexts from it register them there. So
// every contestant is measured with such contexts, the floors included.
//
// Each goroutine has one context for as long as its client is open, made before anything is
// measured. A handler has one per request. Making that costs the same whatever the lock, and would
// only add a constant to each contestant's allocations.
type contexts string

const (
	cancellable contexts = ""           // one per goroutine, as a request handler's
	background  contexts = "Background" // context.Background(), which cannot be cancelled
)

// make returns the contexts of n callers, and a function that cancels them.
func (c contexts) make(n int) (made []context.Context, cancel func()) {
	cancels := make([]context.CancelFunc, 0, n)
	for range n {
		if c == background {
			made = append(made, context.Background())
			continue
		}
		ctx, cancel := context.WithCancel(context.Background())
		made, cancels = append(made, ctx), append(cancels, cancel)
	}
	return made, func() {
		for _, cancel := range cancels {
			cancel()
		}
	}
}

// key returns the key of a figure that was measured with such contexts.
func (c contexts) key(figure string) string {
	if c == cancellable {
		return figure
	}
	return string(c) + " " + figure
}

// besideBackground adds columns for some figures as they are with context.Background(). A ratio
// there is one to the floor that was given the same.
func besideBackground(columns []report.Column, figures ...string) []report.Column {
	for _, figure := range figures {
		i := slices.IndexFunc(columns, func(c report.Column) bool { return c.Key == figure })
		c := columns[i]
		c.Key, c.Head = background.key(c.Key), background.key(c.Head)
		columns = append(columns, c)
	}
	return columns
}

// aboutBackground explains these columns.
const aboutBackground = "Callers' contexts can be cancelled; in the columns of `Background` " +
	"all have context.Background(),\nwith a client of its own, and so has the floor there."

// entrant is a contestant with the contexts that it is called with.
type entrant struct {
	contest.Contestant
	contexts contexts
}

// entrants returns all contestants with the first contexts, then all with the next. What is in
// Java is called with none, and enters once.
func entrants(t *report.Table, cs []contest.Contestant, kinds ...contexts) (es []entrant) {
	for _, kind := range kinds {
		for _, c := range cs {
			if c.Java && kind == background {
				t.Row(c).Note("Background: Java has no contexts")
				continue
			}
			es = append(es, entrant{c, kind})
		}
	}
	return es
}

// label returns the name of the contestant and, unless they can be cancelled, of the contexts.
func (e entrant) label() string {
	if e.contexts == cancellable {
		return e.Name
	}
	return e.Name + ", " + string(e.contexts)
}

// add adds the figures of round i to the contestant's row, beside those with other contexts.
func (e entrant) add(row *report.Row, i int, figures report.Figures) {
	for len(row.Rounds) <= i {
		row.Rounds = append(row.Rounds, report.Figures{})
	}
	for figure, v := range figures {
		row.Rounds[i][e.contexts.key(figure)] = v
	}
}
