package doctor

import (
	"context"
	"strconv"

	"github.com/redis/rueidis"

	"holdfast/internal/wire"
)

// endpoint says what programs need if a name moves to another server. Clients of a cluster and of
// Sentinels find out by themselves.
func endpoint(_ context.Context, n *node) []Finding {
	if n.Endpoint == "" || n.whole.Mode() == rueidis.ClientModeCluster {
		return nil
	}
	return one(ok("%s is a host name. If a failover moves this name to another server, limit "+
		"the lifetime of your programs' connections (ConnLifetime), because open connections stay "+
		"with the old server", n.Endpoint))
}

// sharding looks for a cluster that looks like a single node, as behind a proxy: it refuses calls
// with keys of several slots.
func sharding(ctx context.Context, n *node) []Finding {
	const several = 8 // a proxy may accept those that happen to be at one node
	if n.whole.Mode() == rueidis.ClientModeCluster {
		return nil
	}
	words := []string{"EVAL", "return 1", strconv.Itoa(several)}
	distinct := map[uint16]bool{}
	for range several {
		name := n.lockName()
		words, distinct[wire.Slot(name)] = append(words, name), true
	}
	if len(distinct) == 1 {
		return nil // a hash tag in the prefix puts all locks into one slot
	}
	err := n.do(ctx, words...).Error()
	switch {
	case err == nil:
		return one(ok("the server accepts keys of several slots in one call"))
	case codeOf(err) == "CROSSSLOT":
		return one(warning("turn on the cluster API of the service and use a cluster client. Until "+
			"then holdfast renews each lock with a separate call",
			"the server looks like a single node, but rejects keys of several slots in one call (%s)",
			reason(err)))
	}
	return nil // which the line of scripts explains
}
