package redlock_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// counters are three masters that count, as a lock over them might number its acquisitions. Each
// adds one to its counter when it grants the lock, and the largest of the quorum's replies is the
// token. In the second form the new holder writes the token back to the quorum before it uses it.
type counters struct {
	nodes     [3]int
	writeBack bool
}

// acquire is granted by some nodes, and returns the token.
func (c *counters) acquire(nodes ...int) (token int) {
	for _, i := range nodes {
		c.nodes[i]++
		token = max(token, c.nodes[i])
	}
	if c.writeBack {
		c.write(token, nodes...)
	}
	return token
}

// write makes nodes know a token.
func (c *counters) write(token int, nodes ...int) {
	for _, i := range nodes {
		c.nodes[i] = max(c.nodes[i], token)
	}
}

// restart restarts a node without its data. A delay would change nothing: what it has forgotten it
// does not know afterwards either.
func (c *counters) restart(node int) { c.nodes[node] = 0 }

// These histories of a lock show why a hold of this package has no token.
func TestLargestCounterOfAQuorumIsNoFencingToken(t *testing.T) {
	t.Parallel()
	t.Run("when nodes miss acquisitions", func(t *testing.T) {
		var c counters
		first := c.acquire(0, 1)
		second := c.acquire(0, 2)
		third := c.acquire(1, 2) // each node has counted two of three
		require.Equal(t, []int{1, 2, 2}, []int{first, second, third})
	})
	t.Run("when others fail", func(t *testing.T) {
		var c counters
		c.acquire(2) // two that had no quorum
		c.acquire(2)
		first := c.acquire(0, 2)
		second := c.acquire(0, 1)
		require.Equal(t, []int{3, 2}, []int{first, second}, "even less than before")
	})
	t.Run("when a node forgets, though the token is written back", func(t *testing.T) {
		c := counters{writeBack: true}
		first := c.acquire(0, 1)
		c.restart(1)
		second := c.acquire(1, 2) // the one node of both quorums does not know of the first
		require.Equal(t, []int{1, 1}, []int{first, second})
	})
}

// number is a random history of acquisitions, each of which misses at most one node, and may fail.
// It returns what went wrong, or "" if tokens grew.
func number(t *rapid.T, c counters, forgets bool) string {
	var tokens []int
	var story []string
	for range 20 {
		node := among(t, 3)
		switch chosen := among(t, 8); {
		case chosen < 1 && forgets:
			c.restart(node)
			story = append(story, fmt.Sprintf("%d restarts", node))
		case chosen < 3: // it had no quorum
			c.acquire(node)
			story = append(story, fmt.Sprintf("%d alone", node))
		default:
			quorum := slices.DeleteFunc([]int{0, 1, 2}, func(i int) bool { return i == node })
			tokens = append(tokens, c.acquire(quorum...))
			story = append(story, fmt.Sprintf("%v: %d", quorum, tokens[len(tokens)-1]))
		}
		if n := len(tokens); n > 1 && tokens[n-1] <= tokens[n-2] {
			return fmt.Sprint(story)
		}
	}
	return ""
}

// With two round trips, and nodes that never forget, there would be a token. Both are too much to
// ask.
func TestTokensOfAQuorumGrowOnlyIfWrittenBackAndNoNodeForgets(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		require.Empty(t, number(t, counters{writeBack: true}, false))
	})
	for name, numbered := range map[string]func(*rapid.T) string{
		"not written back": func(t *rapid.T) string { return number(t, counters{}, false) },
		"a node forgets":   func(t *rapid.T) string { return number(t, counters{writeBack: true}, true) },
	} {
		run := rapid.Custom(numbered)
		require.True(
			t,
			slices.ContainsFunc(seeds(1000),
				func(seed int) bool { return run.Example(seed) != "" }),
			name,
		)
	}
}

// seeds returns the numbers below n.
func seeds(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}
