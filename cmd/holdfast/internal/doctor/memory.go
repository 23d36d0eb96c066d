package doctor

import (
	"context"
	"errors"
)

// eviction looks at whether the server may remove locks to make room.
func eviction(ctx context.Context, n *node) []Finding {
	policy, err1 := n.field(ctx, "maxmemory_policy")
	limit, err2 := n.number(ctx, "maxmemory")
	if err := errors.Join(err1, err2); err != nil {
		return one(unknown(err, "that maxmemory-policy is noeviction"))
	}
	const advice = "CONFIG SET maxmemory-policy noeviction, or keep locks in a Redis of their own"
	switch {
	case policy == "noeviction":
		return one(ok("noeviction"))
	case limit == 0:
		return one(warning(advice, "%s may evict locks as soon as maxmemory is set", policy))
	}
	return one(failure(advice, "%s may evict locks, and an evicted lock is free", policy))
}

// memory looks at how much is left until the server refuses new locks.
func memory(ctx context.Context, n *node) []Finding {
	limit, err1 := n.number(ctx, "maxmemory")
	used, err2 := n.number(ctx, "used_memory")
	if err := errors.Join(err1, err2); err != nil {
		return one(unknown(err, "used_memory and maxmemory"))
	}
	const advice = "raise maxmemory, or move other data elsewhere"
	switch {
	case limit == 0:
		return one(ok("no limit"))
	case used >= limit:
		return one(failure(advice, "all of maxmemory is used; new locks are refused"))
	case used > limit/10*9:
		return one(warning(advice, "%d%% of maxmemory is used; new locks are refused at 100%%",
			used*100/limit))
	}
	return one(ok("%d%% of maxmemory is used", used*100/limit))
}
