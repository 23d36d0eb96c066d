package redistest

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// MoveSlot moves a slot with its keys from one node to the other, and returns
// when every node knows. From then on, from answers MOVED.
func (c *Cluster) MoveSlot(tb testing.TB, slot int, from, to *Server) {
	tb.Helper()
	c.BeginMove(tb, slot, from, to)
	c.FinishMove(tb, slot, from, to)
}

// BeginMove opens the migration of a slot and moves none of its keys: from
// answers ASK for a key it does not have, until [Cluster.FinishMove].
func (c *Cluster) BeginMove(tb testing.TB, slot int, from, to *Server) {
	tb.Helper()
	number := strconv.Itoa(slot)
	to.Do(tb, "CLUSTER", "SETSLOT", number, "IMPORTING", from.DoString(tb, "CLUSTER", "MYID"))
	from.Do(tb, "CLUSTER", "SETSLOT", number, "MIGRATING", to.DoString(tb, "CLUSTER", "MYID"))
}

// FinishMove moves the keys of a slot and gives the slot to its new owner.
func (c *Cluster) FinishMove(tb testing.TB, slot int, from, to *Server) {
	tb.Helper()
	number := strconv.Itoa(slot)
	for {
		keys := from.DoStrings(tb, "CLUSTER", "GETKEYSINSLOT", number, "100")
		if len(keys) == 0 {
			break
		}
		migrate := []string{"MIGRATE", host, strconv.Itoa(to.port), "", "0", "5000"}
		if password := to.settings.password; password != "" {
			migrate = append(migrate, "AUTH", password)
		}
		from.Do(tb, append(append(migrate, "KEYS"), keys...)...)
	}
	// The new owner first: at no time does nobody own the slot.
	id := to.DoString(tb, "CLUSTER", "MYID")
	to.Do(tb, "CLUSTER", "SETSLOT", number, "NODE", id)
	from.Do(tb, "CLUSTER", "SETSLOT", number, "NODE", id)
	for _, node := range c.Nodes {
		if node != to && node != from {
			node.Do(tb, "CLUSTER", "SETSLOT", number, "NODE", id)
		}
	}
	require.Same(tb, to, c.Owner(tb, slot))
}
