package demo

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// playUnlocked plays a scene on an embedded server without its lock, and returns what happened.
func playUnlocked(t *testing.T, s scene) []event {
	t.Helper()
	e, _ := startedEmbedded(t)
	for i := range s.cast {
		p := &s.cast[i]
		p.Lock, p.Prefix, p.Server, p.Unlocked = s.lock, "p:", e.server(), true
	}
	all := []scene{s}
	nodes, err := startNodes(all)
	require.NoError(t, err)
	t.Cleanup(nodes.Close)
	file, _ := outputFile(t)
	program, err := os.Executable()
	require.NoError(t, err)
	stage := stage{scenes: all, view: newPlain(file, "", all), nodes: nodes}
	history, err := stage.play(t.Context(), program)
	require.NoError(t, err)
	return history
}

func TestRedlockSceneWithoutItsLockOverlaps(t *testing.T) {
	t.Parallel()
	require.Positive(t, overlaps(sections(playUnlocked(t, redlockScene()))))
}

func TestTransferSceneWithoutItsLockOverlapsAndLosesMoney(t *testing.T) {
	t.Parallel()
	s := transferScene()
	history := playUnlocked(t, s)
	require.Positive(t, overlaps(sections(history)))
	require.NotEmpty(t, s.verdict(history))
}
