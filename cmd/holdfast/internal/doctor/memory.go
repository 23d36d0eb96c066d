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
	const advice = "run CONFIG SET maxmemory-policy noeviction, or use a separate Redis for locks"
	switch {
	case policy == "noeviction":
		return one(ok("maxmemory-policy is noeviction"))
	case limit == 0:
		return one(warning(advice, "%s can evict locks as soon as maxmemory is set", policy))
	}
	return one(failure(advice, "%s can evict locks, and an evicted lock is free", policy))
}

// memory looks at how much is left until the server refuses new locks.
func memory(ctx context.Context, n *node) []Finding {
	limit, err1 := n.number(ctx, "maxmemory")
	used, err2 := n.number(ctx, "used_memory")
	if err := errors.Join(err1, err2); err != nil {
		return one(unknown(err, "used_memory and maxmemory"))
	}
	const advice = "raise maxmemory, or move other data away"
	switch {
	case limit == 0:
		return one(ok("maxmemory is not limited"))
	case used >= limit:
		return one(failure(advice, "all of maxmemory is used, so the server rejects new locks"))
	case used > limit/10*9:
		return one(warning(advice, "%d%% of maxmemory is used. At 100%% the server rejects new locks",
			used*100/limit))
	}
	return one(ok("%d%% of maxmemory is used", used*100/limit))
}
