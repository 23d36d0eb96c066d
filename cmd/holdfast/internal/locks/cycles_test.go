package locks

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"holdfast/internal/identity"
)

// waitFor returns a wait of an owner for another. Owners are "<process>:<number>".
func waitFor(waiter, lock, holder string) Wait {
	return Wait{
		Waiter: Waiter{Owner: waiter, Client: Client{ID: clientOf(waiter)}},
		Lock:   lock,
		Holder: Holder{Owner: holder, Client: Client{ID: clientOf(holder)}},
	}
}

// reaches reports whether a chain of waits leads from one node to another, by trying all.
func reaches(waits []Wait, node func(string, Client) string, from, to string, seen map[string]bool,
) bool {
	for _, w := range waits {
		a, b := node(w.Waiter.Owner, w.Waiter.Client), node(w.Holder.Owner, w.Holder.Client)
		if a != from || a == b {
			continue
		}
		if b == to {
			return true
		}
		if !seen[b] {
			seen[b] = true
			if reaches(waits, node, b, to, seen) {
				return true
			}
		}
	}
	return false
}

// hasCircle reports whether there is a circle.
func hasCircle(waits []Wait, node func(string, Client) string) bool {
	for _, w := range waits {
		from := node(w.Waiter.Owner, w.Waiter.Client)
		if reaches(waits, node, from, from, map[string]bool{}) {
			return true
		}
	}
	return false
}

func TestCirclesAreThoseThatASearchOfAllChainsFinds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		processes := rapid.IntRange(1, 6).Draw(t, "processes")
		threads := rapid.IntRange(1, 3).Draw(t, "threads")
		name := rapid.Custom(func(t *rapid.T) string {
			return fmt.Sprintf("p%d:%d", rapid.IntRange(1, processes).Draw(t, "process"),
				rapid.IntRange(1, threads).Draw(t, "thread"))
		})
		var waits []Wait
		for range rapid.IntRange(0, 14).Draw(t, "waits") {
			a, b := name.Draw(t, "waiter"), name.Draw(t, "holder")
			if a != b {
				waits = append(waits, waitFor(a, "held by "+b, b))
			}
		}
		for _, node := range []func(string, Client) string{owner, process} {
			var want []Wait
			for _, w := range waits {
				a, b := node(w.Waiter.Owner, w.Waiter.Client), node(w.Holder.Owner, w.Holder.Client)
				if a != b && reaches(waits, node, b, a, map[string]bool{}) {
					want = append(want, w)
				}
			}
			require.ElementsMatch(t, want, newGraph(waits, node).inCircles())
		}
		all := append([]Wait(nil), waits...)
		cycles := cyclesOf(append([]Wait(nil), waits...))
		require.Equal(t, hasCircle(all, owner), len(cycles) > 0 && cycles[0].Certain)
		require.Equal(t, hasCircle(all, owner) || hasCircle(all, process), len(cycles) > 0)
		for _, c := range cycles {
			node := process
			if c.Certain {
				node = owner
			}
			require.GreaterOrEqual(t, len(c.Waits), 2)
			for i, w := range c.Waits {
				next := c.Waits[(i+1)%len(c.Waits)]
				require.Contains(t, all, w)
				require.Equal(t, node(w.Holder.Owner, w.Holder.Client),
					node(next.Waiter.Owner, next.Waiter.Client))
			}
			var left []Wait // after the advice was followed
			for _, w := range all {
				if w.key()[1] != c.Waits[0].Lock || w.Holder.Owner != c.Waits[0].Holder.Owner {
					left = append(left, w)
				}
			}
			all = left
		}
		require.False(t, hasCircle(all, owner) || hasCircle(all, process))
	})
}

func TestClientsOfOneProcessAreTheSameProcess(t *testing.T) {
	t.Parallel()
	a := waitFor("x:1", "a", "y:1")
	b := waitFor("z:1", "b", "x:2")
	require.Empty(t, cyclesOf([]Wait{a, b}))
	a.Holder.Client = Client{ID: "y", Identity: identity.Identity{Host: "web-1", PID: 7}}
	b.Waiter.Client = Client{ID: "z", Identity: identity.Identity{Host: "web-1", PID: 7}}
	cycles := cyclesOf([]Wait{a, b})
	require.Len(t, cycles, 1)
	require.False(t, cycles[0].Certain)
}
