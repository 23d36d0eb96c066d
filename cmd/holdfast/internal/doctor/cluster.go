package doctor

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/redis/rueidis"
)

// cluster looks at what the node says of its cluster. Elsewhere it finds nothing.
func cluster(ctx context.Context, n *node) []Finding {
	if n.whole.Mode() != rueidis.ClientModeCluster {
		if said, _ := n.info(ctx); said["cluster_enabled"] != "1" {
			return nil
		}
		return one(failure("allow this user +cluster",
			"a node of a cluster that does not tell this user about the others"))
	}
	state, err := n.clusterInfo(ctx)
	if err != nil {
		return one(unknown(err, "CLUSTER INFO and CLUSTER NODES"))
	}
	const advice = "redis-cli --cluster check, and bring its nodes back"
	switch {
	case state["cluster_slots_assigned"] != "16384":
		return one(failure(advice, "%s of 16384 slots have a node; locks in the others are refused",
			state["cluster_slots_assigned"]))
	case state["cluster_state"] != "ok":
		return one(failure(advice, "cluster_state %s; locks are refused", state["cluster_state"]))
	}
	lines, err := n.text(ctx, "CLUSTER", "NODES")
	if err != nil {
		return one(unknown(err, "CLUSTER NODES"))
	}
	switch failing, lonely := weakNodes(lines); {
	case len(failing) > 0:
		return one(warning(advice, "%s cannot be reached by other nodes",
			strings.Join(failing, ", ")))
	case len(lonely) > 0:
		return one(warning("give each master a replica", "no replica of %s; if a master fails, "+
			"locks in its slots are refused", strings.Join(lonely, ", ")))
	}
	return one(ok("all slots are served, and each master has a replica"))
}

// clusterInfo returns the fields of CLUSTER INFO.
func (n *node) clusterInfo(ctx context.Context) (map[string]string, error) {
	text, err := n.text(ctx, "CLUSTER", "INFO")
	if err != nil {
		return nil, err
	}
	fields := parseFields(text)
	if fields["cluster_state"] == "" {
		return nil, errors.New("CLUSTER INFO has no cluster_state")
	}
	return fields, nil
}

// weakNodes reads CLUSTER NODES and returns the addresses of nodes that fail, and those of masters
// with slots that have no replica. A line is: id, address, flags, id of the master, ping, pong,
// epoch, link, slots.
func weakNodes(lines string) (failing, lonely []string) {
	copied := map[string]bool{} // ids of masters with a replica that does not fail
	masters := map[string]string{}
	var ids []string
	for line := range strings.Lines(lines) {
		words := strings.Fields(line)
		if len(words) < 8 {
			continue
		}
		id, flags := words[0], words[2]
		address, _, _ := strings.Cut(words[1], "@")
		switch {
		case strings.Contains(flags, "fail"):
			failing = append(failing, address)
		case strings.Contains(flags, "slave"):
			copied[words[3]] = true
		case len(words) > 8:
			masters[id] = address
			ids = append(ids, id)
		}
	}
	for _, id := range ids {
		if !copied[id] {
			lonely = append(lonely, masters[id])
		}
	}
	slices.Sort(failing) // each node has an order of its own
	slices.Sort(lonely)
	return failing, lonely
}
