//go:build redis

package redistest

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestClusterServesAllSlotsEvenly(t *testing.T) {
	t.Parallel()
	c := StartCluster(t, 3)
	require.Len(t, c.Nodes, 3)
	served := map[*Server]int{}
	for slot := range slots {
		if slot%64 == 0 { // a sample: one command per slot
			served[c.Owner(t, slot)]++
		}
	}
	for _, node := range c.Nodes {
		require.InDelta(t, slots/64/3, served[node], 1)
	}
	client := c.Client(t)
	for i := range 20 { // some for each node
		key := "k" + strconv.Itoa(i)
		require.NoError(t,
			client.Do(t.Context(), client.B().Set().Key(key).Value("v").Build()).Error())
		require.Equal(t, "v", c.Owner(t, c.Slot(t, key)).DoString(t, "GET", key))
	}
}

func TestMovedSlotTakesItsKeysAlong(t *testing.T) {
	t.Parallel()
	c := StartCluster(t, 2)
	slot := c.Slot(t, "k")
	from := c.Owner(t, slot)
	to := c.Nodes[0]
	if to == from {
		to = c.Nodes[1]
	}
	from.Do(t, "SET", "k", "v", "PX", "60000")

	c.BeginMove(t, slot, from, to)
	require.Equal(t, "v", from.DoString(t, "GET", "k"))
	_, err := from.Call("GET", "{k}absent")
	require.ErrorContains(t, err, "ASK "+strconv.Itoa(slot)+" "+to.Addr())

	c.FinishMove(t, slot, from, to)
	require.Equal(t, "v", to.DoString(t, "GET", "k"))
	require.Positive(t, to.DoInt(t, "PTTL", "k"))
	_, err = from.Call("GET", "k")
	require.ErrorContains(t, err, "MOVED "+strconv.Itoa(slot)+" "+to.Addr())
}
