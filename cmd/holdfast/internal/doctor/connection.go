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
		return one(unknown(err, "that connected_clients is less than maxclients"))
	}
	const advice = "raise maxclients, or use CLIENT LIST to find programs that leave connections open"
	switch {
	case used >= limit:
		return one(failure(advice, "all of maxclients (%d) are connected, so the server rejects other "+
			"clients", limit))
	case used > limit/10*8:
		return one(warning(advice, "%d of maxclients (%d) are connected", used, limit))
	}
	return one(ok("%d of maxclients (%d) are connected", used, limit))
}

// leastTimeout is longer than the pause between two PINGs of idle clients, Redisson's included.
const leastTimeout = 60

// timeout looks at whether the server closes idle connections.
func timeout(ctx context.Context, n *node) []Finding {
	text, err := n.config(ctx, "timeout")
	seconds, err2 := strconv.Atoi(text)
	if err != nil {
		return one(unknown(err, "that timeout is 0, or at least 60"))
	}
	switch {
	case err2 == nil && seconds == 0:
		return one(ok("idle connections stay open"))
	case err2 == nil && seconds >= leastTimeout:
		return one(ok("the server closes connections after %d idle seconds, which the PINGs of clients "+
			"prevent", seconds))
	}
	return one(warning("run CONFIG SET timeout 0", "the server closes connections after %s idle "+
		"seconds. Clients that send a PING later, as Redisson does after 30 s, then fail or need "+
		"longer", text))
}
