package doctor

import "context"

// leases looks for locks that never expire.
func leases(ctx context.Context, n *node) []Finding {
	return one(ok("todo"))
}
