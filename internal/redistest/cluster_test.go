//go:build redis

package redistest

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

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
