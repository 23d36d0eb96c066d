package redistest

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// MoveSlot moves a slot with its keys from one node to another, and returns when every node that
// replies knows. From then on, from replies MOVED.
func (c *Cluster) MoveSlot(tb testing.TB, slot int, from, to *Server) {
	tb.Helper()
	c.BeginMove(tb, slot, from, to)
	c.FinishMove(tb, slot, from, to)
}

// BeginMove opens the migration of a slot and moves none of its keys: from replies ASK for a key
// that it does not have, until [Cluster.FinishMove].
func (c *Cluster) BeginMove(tb testing.TB, slot int, from, to *Server) {
	tb.Helper()
	number := strconv.Itoa(slot)
	to.Do(tb, "CLUSTER", "SETSLOT", number, "IMPORTING", from.DoString(tb, "CLUSTER", "MYID"))
	from.Do(tb, "CLUSTER", "SETSLOT", number, "MIGRATING", to.DoString(tb, "CLUSTER", "MYID"))
}

// FinishMove moves the keys of a slot and assigns the slot to its new owner.
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
	// The new owner comes first, so that the slot always has an owner.
	id := to.DoString(tb, "CLUSTER", "MYID")
	to.Do(tb, "CLUSTER", "SETSLOT", number, "NODE", id)
	from.Do(tb, "CLUSTER", "SETSLOT", number, "NODE", id)
	for _, node := range c.Masters(tb) {
		if node != to && node != from {
			node.Do(tb, "CLUSTER", "SETSLOT", number, "NODE", id)
		}
	}
	// Replicas must hear of it from the owner: one that has not would not be elected.
	for _, node := range c.All() {
		if node != to && node.role() == "slave" {
			to.meet(tb, node)
		}
	}
	require.Eventually(tb, func() bool { return c.agreed(slot, to) }, failoverTimeout,
		10*time.Millisecond,
		"not all nodes know that slot %d has moved", slot)
}
