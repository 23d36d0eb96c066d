package demo

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The scene uses these servers and no others.
func TestStoppedNodeIsGoneAndTheOthersReply(t *testing.T) {
	s := redlockScene()
	all := []scene{s}
	nodes, err := startNodes(all)
	require.NoError(t, err)
	t.Cleanup(nodes.Close)
	stage := stage{scenes: all, nodes: nodes}
	stage.stop("node2")
	require.Len(t, stage.merge.pending, 1)
	distinct := map[string]bool{}
	for i, node := range s.cast[0].Nodes {
		distinct[node.Address] = true
		client, err := node.connect(t.Context())
		if s.nodes[i] == "node2" {
			require.ErrorContains(t, err, "cannot reach Redis")
			continue
		}
		require.NoError(t, err)
		client.Close()
	}
	require.Len(t, distinct, redlockNodes)
}
