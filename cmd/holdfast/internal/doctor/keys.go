package doctor

import (
	"context"
	"fmt"

	found "holdfast/cmd/holdfast/internal/locks"
	"holdfast/rlock"
)

// mostKeys is how many keys of each node are looked at, unless all are asked for.
const mostKeys = 100_000

// leases looks for locks that never expire: if their holder dies, nobody gets them.
func leases(ctx context.Context, n *node) []Finding {
	query, where := found.Query{Most: mostKeys}, fmt.Sprintf("among the first %d keys", mostKeys)
	if n.Full {
		query, where = found.Query{}, "among all keys"
	}
	var count int
	var example string
	for lock, err := range found.List(ctx, n.whole, query) {
		if err != nil {
			return one(unknown(err, "that holdfast ls lists no lock that never ends"))
		}
		if lock.TTL == rlock.NoExpiry {
			count++
			example = lock.Name
		}
	}
	if count > 0 {
		return one(warning("run holdfast inspect, and holdfast unlock if the holder is gone. Then give "+
			"the lock a lease in its program", `%d locks %s never expire, such as "%s"`,
			count, where, example))
	}
	return one(ok("no lock %s is without a lease", where))
}
