package doctor

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"holdfast/internal/docs"
)

// moves says what programs need whose server has become a replica.
const moves = ". If this server was the master and its address now belongs to another server, " +
	"limit the lifetime of your programs' connections (ConnLifetime), so that they follow the address"

// role looks at whether the server takes writes.
func role(ctx context.Context, n *node) []Finding {
	role, err := n.field(ctx, "role")
	if err != nil {
		return one(unknown(err, "that the server is not a replica"))
	}
	if role != "slave" {
		return one(ok("%s", role))
	}
	said, _ := n.info(ctx)
	of := said["master_host"] + ":" + said["master_port"]
	if said["master_link_status"] != "up" {
		return one(failure("bring its master back, and connect to the master"+moves,
			"a replica that has lost its master %s and grants no locks", of))
	}
	return one(failure("connect to the master, or use --sentinel"+moves,
		"a replica of %s, which grants no locks", of))
}

// replica is what a master knows of a replica.
type replica struct {
	address, state string
	lag            time.Duration // since it was last heard of
}

// replicasOf returns the replicas of a master.
func (n *node) replicasOf(ctx context.Context) (all []replica, err error) {
	count, err := n.number(ctx, "connected_slaves")
	for i := range count {
		text, err := n.field(ctx, "slave"+strconv.FormatInt(i, 10))
		if err != nil {
			return nil, err
		}
		fields := map[string]string{}
		for part := range strings.SplitSeq(text, ",") {
			name, value, _ := strings.Cut(part, "=")
			fields[name] = value
		}
		lag, err := strconv.Atoi(fields["lag"])
		if err != nil {
			return nil, fmt.Errorf("INFO has the unknown replica %q", text)
		}
		all = append(all, replica{fields["ip"] + ":" + fields["port"], fields["state"],
			time.Duration(lag) * time.Second})
	}
	return all, err
}

// longestLag is how long a replica may be silent. It reports each second.
const longestLag = 3 * time.Second

// replicas looks at whether the replicas keep up.
func replicas(ctx context.Context, n *node) (found []Finding) {
	all, err := n.replicasOf(ctx)
	if err != nil {
		return one(unknown(err, "that the replicas are online and do not lag"))
	}
	const advice = "check this replica and its network, and do not fail over to it before that"
	for _, r := range all {
		switch {
		case r.state != "online":
			found = append(found, warning(advice, "%s is not in sync (%s), so it lacks locks",
				r.address, r.state))
		case r.lag >= longestLag:
			found = append(found, warning(advice, "%s has not reported for %v, so it may lack locks",
				r.address, r.lag))
		}
	}
	if len(found) == 0 {
		return one(ok("replicas: %d, none lags", len(all)))
	}
	return found
}

// failover looks at what a failover may forget.
func failover(ctx context.Context, n *node) []Finding {
	all, err := n.replicasOf(ctx)
	if err != nil {
		return one(unknown(err, "that min-replicas-to-write is at least 1 if there are replicas"))
	}
	said, _ := n.info(ctx)
	const sync = "acquire locks with the option SyncReplicas 1 (" + docs.Base + "configuration.md)"
	good, limited := said["min_slaves_good_slaves"] // only if min-replicas-to-write is set
	switch {
	case limited && good == "0":
		return one(failure("bring replicas back, or run CONFIG SET min-replicas-to-write 0",
			"fewer replicas than min-replicas-to-write, so the server rejects locks"))
	case limited:
		return one(ok("min-replicas-to-write is set, so a master without replicas grants no locks. To " +
			"lose no lock in a failover, " + sync))
	case len(all) == 0:
		return one(ok("no replicas, so there is no failover"))
	}
	return one(warning("run CONFIG SET min-replicas-to-write 1, and "+sync,
		"min-replicas-to-write is 0, so a failover loses the locks that a disconnected master "+
			"still grants"))
}
