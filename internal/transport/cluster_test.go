//go:build redis

package transport

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
)

func TestEverySlotIsFoundAtTheNodeThatServesIt(t *testing.T) {
	t.Parallel()
	nodes := redistest.StartCluster(t, 3)
	client := nodes.Client(t)
	c := &cluster{client: client}
	for _, slot := range []uint16{0, 1, 5460, 5461, 5462, 10921, 10922, 10923, 16383} {
		address, err := c.master(t.Context(), slot, false)
		require.NoError(t, err)
		require.Equal(t, nodes.Owner(t, int(slot)).Addr(), address)
		require.Contains(t, client.Nodes(), address)
		require.Equal(t, address, c.remembered(slot))
	}
}

func TestSlotThatMovedIsFoundOnceItsOldNodeProvedWrong(t *testing.T) {
	t.Parallel()
	nodes := redistest.StartCluster(t, 2)
	c := &cluster{client: nodes.Client(t)}
	before, err := c.master(t.Context(), 7, false)
	require.NoError(t, err)
	require.Equal(t, nodes.Nodes[0].Addr(), before)
	nodes.MoveSlot(t, 7, nodes.Nodes[0], nodes.Nodes[1])

	remembered, err := c.master(t.Context(), 7, false)
	require.NoError(t, err)
	require.Equal(t, before, remembered)
	require.Eventually(t, func() bool {
		found, err := c.master(t.Context(), 7, true)
		return err == nil && found == nodes.Nodes[1].Addr()
	}, 5*time.Second, 10*time.Millisecond)
	neighbour, err := c.master(t.Context(), 8, false)
	require.NoError(t, err)
	require.Equal(t, before, neighbour)
}
