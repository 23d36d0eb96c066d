package demo

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// playUnlocked plays a scene on an embedded server without its lock, and returns what happened.
// Like the demo, it plays again if a process failed while the machine stood still.
func playUnlocked(t *testing.T, lock string) []event {
	t.Helper()
	for range 5 * plays {
		history, stall, err := playOnceUnlocked(t, lock)
		if err == nil {
			return history
		}
		require.ErrorIs(t, err, errStopped)
		require.GreaterOrEqual(t, stall, stillness, "no stall explains it: %v", err)
	}
	require.FailNow(t, "this machine is too busy")
	return nil
}

func playOnceUnlocked(t *testing.T, lock string) ([]event, time.Duration, error) {
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
	return history, stage.stalls.longest(), err
}

func TestScenesWithoutTheirLocksOverlap(t *testing.T) {
	t.Parallel()
	for _, lock := range []string{"redlock", "transfer"} {
		count, _ := overlaps(audit(playUnlocked(t, lock)))
		require.Positive(t, count)
	}
}
