package doctor

import (
	"context"
	"strings"
)

// service looks for several masters of one key. There no lock is safe: each of two masters grants
// it, and they agree only afterwards.
func service(ctx context.Context, n *node) []Finding {
	said, err := n.info(ctx)
	if err != nil {
		return one(unknown(err, "that only one master takes writes (not active-active or multi-region)"))
	}
	const advice = "keep locks in a database with one master, because no lock is safe on several"
	if said["role"] == "active-replica" { // KeyDB with active-replica yes
		return one(failure(advice, "active replication of KeyDB, so two masters can grant the same lock"))
	}
	for field, value := range said {
		// Redis Enterprise loads a module for databases that are active-active.
		if strings.HasPrefix(field, "crdt") || field == "module" && strings.Contains(value, "=crdt") {
			return one(failure(advice, "an active-active database, so two masters can grant the same lock"))
		}
	}
	return one(ok("no sign of a second master"))
}
