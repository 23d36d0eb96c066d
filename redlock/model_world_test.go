package redlock_test

import (
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"
)

// This is a model of the protocol: nodes, clients and messages, without Redis and without the code
// of this package. Real time is in microseconds, and no one can read it: each has its own clock.
// Leases are in milliseconds, as in messages.

// modelMaxLease is the longest lease of any client.
const modelMaxLease = 2000

// requestKind is what a client asks of a node.
type requestKind uint8

const (
	acquires requestKind = iota
	renews
	releases
)

func (k requestKind) String() string { return [...]string{"acquires", "renews", "releases"}[k] }

// request is a command on its way. It may arrive at any time, or twice, or never, whether its
// sender still waits or not.
type request struct {
	kind     requestKind
	from     *modelAcquisition
	node     int
	owner    string
	lease    int64
	sent     int64 // by the clock of the client
	answered bool
	yes      bool
	gone     bool // it will not be executed any more
	given    bool // its sender got the reply, or gave up
}

// world is one run of the model.
type world struct {
	*protocol
	now      int64
	nodes    []*modelNode
	clients  []*modelClient
	requests []*request
	names    int
	story    []event
}

// event is what happened in a run, and when. It is formatted only if the run went wrong.
type event struct {
	at     int64
	format string
	args   []any
}

// modelStart is when a run starts: all nodes have been up for long then.
const modelStart = 1_000_000_000

// newWorld draws clocks that differ by at most one per cent from each other.
func newWorld(t *rapid.T, p *protocol) *world {
	w := &world{protocol: p, now: modelStart}
	rates := []int64{995_000, 1_000_000, 1_005_000}
	for range 3 + 2*(among(t, 8)/7) {
		n := &modelNode{clock: clock{int64(1+among(t, 100)) * 10_000, rates[among(t, 3)]}}
		if p.epoch {
			n.data.epoch = 1 // it has been in use for long
		}
		w.nodes = append(w.nodes, n)
	}
	for i := range 2 + among(t, 8)/7 {
		w.clients = append(w.clients,
			&modelClient{name: string(rune('A' + i)), clock: clock{0, rates[among(t, 3)]}})
	}
	return w
}

func (w *world) quorum() int { return len(w.nodes)/2 + 1 }

func (w *world) tell(format string, args ...any) {
	w.story = append(w.story, event{w.now, format, args})
}

// told returns the story of the run.
func (w *world) told() string {
	var b strings.Builder
	for _, e := range w.story {
		fmt.Fprintf(&b, "%10.3f ms  %s\n", float64(e.at-w.story[0].at)/1000,
			fmt.Sprintf(e.format, e.args...))
	}
	return b.String()
}

// carryOut has the node execute a request.
func (w *world) carryOut(r *request) {
	yes := w.nodes[r.node].execute(w.protocol, r, w.now)
	w.tell("node %d carries out: %s %v, %v", r.node, r.owner, r.kind, yes)
	if !r.answered {
		r.answered, r.yes = true, yes
	}
}

// deliver is carryOut for a request that sometimes stays on its way, to be executed again.
func (w *world) deliver(t *rapid.T, r *request) {
	w.carryOut(r)
	r.gone = among(t, 8) > 0
	w.requests = slices.DeleteFunc(w.requests, func(r *request) bool { return r.gone && r.given })
}

// underWay returns the requests that may still be executed, or be executed again.
func (w *world) underWay() []*request {
	return slices.DeleteFunc(slices.Clone(w.requests), func(r *request) bool { return r.gone })
}

// limits returns future instants at which something ends.
func (w *world) limits() []int64 {
	var limits []int64
	for _, n := range w.nodes {
		second := n.started/1000 + int64(w.delayed())/1000
		for _, shows := range []int64{n.data.until * 1000, second * 1_000_000, (second + 1) * 1_000_000} {
			limits = append(limits, n.clock.when(shows))
		}
	}
	for _, c := range w.clients {
		if c.acquisition != nil {
			for _, part := range c.acquisition.parts {
				limits = append(limits, c.clock.when(part.deadline))
			}
		}
	}
	limits = slices.DeleteFunc(limits, func(at int64) bool { return at <= w.now })
	slices.Sort(limits)
	return limits
}

// pass lets time pass, often just up to the end of something.
func (w *world) pass(t *rapid.T) {
	spells := []int64{300, 1_000, 5_000, 40_000, 300_000, 1_100_000}
	limits := w.limits()
	chosen := among(t, len(spells)+3)
	switch {
	case chosen < len(spells):
		w.now += spells[chosen]
	case len(limits) > 0:
		w.now = max(w.now, limits[among(t, min(3, len(limits)))]-int64(among(t, 2)))
	}
}

// among draws an index below n, which is below 128, each about equally often. The generators of
// rapid prefer small numbers.
func among(t *rapid.T, n int) int {
	drawn := 0
	for range 7 {
		drawn *= 2
		if rapid.Bool().Draw(t, "bit") {
			drawn++
		}
	}
	return drawn * n >> 7
}
