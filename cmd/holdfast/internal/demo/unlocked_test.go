package demo

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// playUnlocked plays a scene on an embedded server without its lock, and returns what happened.
func playUnlocked(t *testing.T, lock string) []event {
	t.Helper()
	where, client := startedEmbedded(t)
	s := find(scenes("p:", where, false), lock)
	for i := range s.cast {
		p := &s.cast[i]
		for j := range p.Names {
			p.Names[j] += p.Process
		}
	}
	all := []scene{s}
	nodes := nodes{}
	t.Cleanup(nodes.Close)
	require.NoError(t, nodes.start(all))
	file, _ := outputFile(t)
	screen := newScreen(Options{Output: file})
	stage := stage{scenes: all, redis: client, nodes: nodes, screen: screen,
		story: newStory(all, screen.print)}
	history, err := stage.play(t.Context())
	require.NoError(t, err)
	return history
}

func TestScenesWithoutTheirLocksOverlap(t *testing.T) {
	t.Parallel()
	for _, lock := range []string{"redlock", "transfer"} {
		count, _ := overlaps(audit(playUnlocked(t, lock)))
		require.Positive(t, count)
	}
}
