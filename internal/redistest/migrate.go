package redistest

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// MoveSlot moves a slot with its keys from one node to the other, and returns
// when every node that answers knows. From then on, from answers MOVED.
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
	for _, node := range c.Masters(tb) {
		if node != to && node != from {
			node.Do(tb, "CLUSTER", "SETSLOT", number, "NODE", id)
		}
	}
	// Replicas have to hear of it from the owner. One that has not heard would not be elected.
	for _, node := range c.All() {
		if node != to && node.role() == "slave" {
			to.meet(tb, node)
		}
	}
	require.Eventually(tb, func() bool { return c.agreed(slot, to) }, failoverTimeout, 10*time.Millisecond,
		"not everybody knows that slot %d has moved", slot)
}
