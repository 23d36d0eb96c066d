package doctor

import (
	"context"
	"errors"
	"strconv"
)

// connections looks at how many more clients the server takes.
func connections(ctx context.Context, n *node) []Finding {
	limit, err1 := n.number(ctx, "maxclients")
	used, err2 := n.number(ctx, "connected_clients")
	if err := errors.Join(err1, err2); err != nil {
		return one(unknown(err, "connected_clients and maxclients"))
	}
	const advice = "raise maxclients, or find out who does not close connections (CLIENT LIST)"
	switch {
	case used >= limit:
		return one(failure(advice, "all of maxclients (%d) are connected; others are refused", limit))
	case used > limit/10*8:
		return one(warning(advice, "%d of maxclients (%d) are connected", used, limit))
	}
	return one(ok("%d of %d", used, limit))
}

// leastTimeout is longer than the pause between two PINGs of idle clients, Redisson's included.
const leastTimeout = 60

// timeout looks at whether the server closes idle connections.
func timeout(ctx context.Context, n *node) []Finding {
	text, err := n.config(ctx, "timeout")
	seconds, err2 := strconv.Atoi(text)
	if err != nil {
		return one(unknown(err, "that timeout is 0, or more than a minute"))
	}
	switch {
	case err2 == nil && seconds == 0:
		return one(ok("idle connections stay open"))
	case err2 == nil && seconds >= leastTimeout:
		return one(ok("idle connections are closed after %d s, which PINGs of clients prevent", seconds))
	}
	return one(warning("CONFIG SET timeout 0", "idle connections are closed after %s s; clients "+
		"that send a PING later than that, as Redisson does after 30 s, then fail or take longer", text))
}
