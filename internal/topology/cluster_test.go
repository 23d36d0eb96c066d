package topology_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/internal/topology"
)

func TestEverySlotIsFoundAtTheNodeThatServesIt(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3)
	client := cluster.Client(t)
	c := topology.New(client)
	for _, slot := range []uint16{0, 1, 5460, 5461, 5462, 10921, 10922, 10923, 16383} {
		address, err := c.Master(t.Context(), slot, false)
		require.NoError(t, err)
		require.Equal(t, cluster.Owner(t, int(slot)).Addr(), address)
		require.Contains(t, client.Nodes(), address)
		require.Equal(t, address, c.Known(slot))
	}
}

func TestSlotThatMovedIsFoundOnceItsOldNodeProvedWrong(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 2)
	c := topology.New(cluster.Client(t))
	before, err := c.Master(t.Context(), 7, false)
	require.NoError(t, err)
	require.Equal(t, cluster.Nodes[0].Addr(), before)
	cluster.MoveSlot(t, 7, cluster.Nodes[0], cluster.Nodes[1])

	remembered, err := c.Master(t.Context(), 7, false)
	require.NoError(t, err)
	require.Equal(t, before, remembered)
	require.Eventually(t, func() bool {
		found, err := c.Master(t.Context(), 7, true)
		return err == nil && found == cluster.Nodes[1].Addr()
	}, 5*time.Second, 10*time.Millisecond)
	neighbour, err := c.Master(t.Context(), 8, false)
	require.NoError(t, err)
	require.Equal(t, before, neighbour)
}
