package locks

import (
	"context"
	"fmt"
	"slices"

	"github.com/redis/rueidis"
)

// Cycle is a circle of owners or processes that wait for each other: who holds the lock of one wait
// is who waits in the next, and the last one is followed by the first. It lasts until a waiter
// gives up or a lease ends.
type Cycle struct {
	// Certain says that the owners that wait are those that hold, as threads of Redisson. Else only
	// their processes are the same, and other goroutines may hold the locks, and give them back: an
	// owner of this library has a new name in Redis for each acquisition.
	Certain bool
	Waits   []Wait // to release the lock of the first one ends the circle
}

// Wait is an owner that waits for a lock, and an owner that holds that lock.
type Wait struct {
	Waiter Waiter
	Lock   string
	Holder Holder
}

// key identifies the wait, without what changes while it lasts.
func (w Wait) key() [3]string { return [3]string{w.Waiter.Owner, w.Lock, w.Holder.Owner} }

// Cycles finds circles of processes that wait for each other, as far as Redis knows who waits.
// After all of those that it returns are ended, there is none. Locks are read one after the other,
// so it reads those in circles twice: waits that both found have lasted for the time in between,
// and were all there at once.
func Cycles(ctx context.Context, redis rueidis.Client, q Query) ([]Cycle, error) {
	var first []Wait
	for lock, err := range List(ctx, redis, q) {
		if err != nil {
			return nil, err
		}
		first = append(first, waitsOf(lock)...)
	}
	suspects := map[string]bool{}
	for _, node := range []func(string, Client) string{owner, process} {
		for _, w := range newGraph(first, node).inCircles() {
			suspects[w.Lock] = true
		}
	}
	if len(suspects) == 0 {
		return nil, nil
	}
	second := map[[3]string]bool{}
	for name := range suspects {
		lock, err := Inspect(ctx, redis, name)
		if err != nil {
			return nil, err
		}
		for _, w := range waitsOf(lock) {
			second[w.key()] = true
		}
	}
	first = slices.DeleteFunc(first, func(w Wait) bool { return !second[w.key()] })
	return cyclesOf(first), nil
}

// waitsOf returns who waits for whom because of a lock. An owner does not wait for itself: what
// looks so is about to be cleaned up.
func waitsOf(l Lock) (waits []Wait) {
	for _, w := range l.Waiters {
		for _, h := range l.Holders {
			if w.Owner != "" && w.Owner != h.Owner {
				waits = append(waits, Wait{w, l.Name, h})
			}
		}
	}
	return waits
}

// cyclesOf returns circles such that none is left after the first lock of each is released: first
// those of owners, then those that only processes form.
func cyclesOf(waits []Wait) (all []Cycle) {
	slices.SortFunc(waits, func(a, b Wait) int {
		x, y := a.key(), b.key()
		return slices.Compare(x[:], y[:])
	})
	waits = slices.CompactFunc(waits, func(a, b Wait) bool { return a.key() == b.key() })
	for _, certain := range []bool{true, false} {
		node := process
		if certain {
			node = owner
		}
		for {
			g := newGraph(waits, node)
			inCircles := g.inCircles()
			if len(inCircles) == 0 {
				break
			}
			circle := g.circle(inCircles[0])
			all = append(all, Cycle{certain, circle})
			released := circle[0]
			waits = slices.DeleteFunc(waits, func(w Wait) bool {
				return w.Lock == released.Lock && w.Holder.Owner == released.Holder.Owner
			})
		}
	}
	return all
}

// owner and process are what a circle consists of.
func owner(owner string, _ Client) string { return owner }

func process(_ string, c Client) string {
	if c.Host == "" || c.PID == 0 {
		return c.ID
	}
	return fmt.Sprintf("%s %d %d", c.Host, c.PID, c.Start.UnixMilli())
}

// graph has an edge for each wait, from who waits to who holds.
type graph struct {
	waits []Wait
	edges map[string][]edge // by the node that they leave
	part  map[string]int    // by node, the strongly connected component that it belongs to
}

type edge struct {
	to   string
	wait int // the index of its wait
}

// newGraph returns the graph of owners or processes. Waits within a process are not in it.
func newGraph(waits []Wait, node func(string, Client) string) *graph {
	g := &graph{waits: waits, edges: map[string][]edge{}}
	for i, w := range waits {
		from, to := node(w.Waiter.Owner, w.Waiter.Client), node(w.Holder.Owner, w.Holder.Client)
		if from != to {
			g.edges[from] = append(g.edges[from], edge{to, i})
		}
	}
	g.connect()
	return g
}

// connect finds the strongly connected components, with Tarjan's algorithm. It does not recurse:
// chains of waiters may be long.
func (g *graph) connect() {
	g.part = map[string]int{}
	index, low := map[string]int{}, map[string]int{} // from 1 on
	type visit struct {
		node string
		next int // the edge to follow next
	}
	var stack []string // nodes without a component
	for root := range g.edges {
		if index[root] > 0 {
			continue
		}
		path := []visit{{root, 0}}
		for len(path) > 0 {
			v := &path[len(path)-1]
			n := v.node
			if v.next == 0 {
				index[n] = len(index) + 1
				low[n] = index[n]
				stack = append(stack, n)
			}
			if v.next < len(g.edges[n]) {
				to := g.edges[n][v.next].to
				v.next++
				if index[to] == 0 {
					path = append(path, visit{to, 0})
				} else if g.part[to] == 0 {
					low[n] = min(low[n], index[to])
				}
				continue
			}
			path = path[:len(path)-1]
			if len(path) > 0 {
				before := path[len(path)-1].node
				low[before] = min(low[before], low[n])
			}
			if low[n] == index[n] {
				for g.part[n] == 0 {
					last := len(stack) - 1
					g.part[stack[last]] = index[n]
					stack = stack[:last]
				}
			}
		}
	}
}

// inCircles returns the waits that are part of a circle, in order.
func (g *graph) inCircles() []Wait {
	var indices []int
	for from, edges := range g.edges {
		for _, e := range edges {
			if g.part[from] == g.part[e.to] {
				indices = append(indices, e.wait)
			}
		}
	}
	slices.Sort(indices)
	waits := make([]Wait, len(indices))
	for i, index := range indices {
		waits[i] = g.waits[index]
	}
	return waits
}

// circle returns a shortest circle with a wait that is part of one, which comes first.
func (g *graph) circle(first Wait) []Wait {
	var from, to string
	for node, edges := range g.edges {
		for _, e := range edges {
			if g.waits[e.wait].key() == first.key() {
				from, to = node, e.to
			}
		}
	}
	type step struct {
		before string
		wait   int
	}
	came := map[string]step{to: {}}
	for next := []string{to}; len(next) > 0; next = next[1:] {
		for _, e := range g.edges[next[0]] {
			if _, known := came[e.to]; !known {
				came[e.to] = step{next[0], e.wait}
				next = append(next, e.to)
			}
		}
	}
	circle := []Wait{}
	for at := from; at != to; at = came[at].before {
		circle = append(circle, g.waits[came[at].wait])
	}
	slices.Reverse(circle)
	return append([]Wait{first}, circle...)
}
