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
		return one(failure("grant +cluster to this user",
			"this user may not ask this node of a cluster about the other nodes"))
	}
	state, err := n.clusterInfo(ctx)
	if err != nil {
		return one(unknown(err, "that CLUSTER INFO and CLUSTER NODES show no failed node"))
	}
	const advice = "run redis-cli --cluster check, and bring the nodes back"
	switch {
	case state["cluster_slots_assigned"] != "16384":
		return one(failure(advice, "only %s of 16384 slots have a node, so locks in the other slots fail",
			state["cluster_slots_assigned"]))
	case state["cluster_state"] != "ok":
		return one(failure(advice, "cluster_state is %s, so the cluster rejects locks",
			state["cluster_state"]))
	}
	lines, err := n.text(ctx, "CLUSTER", "NODES")
	if err != nil {
		return one(unknown(err, "that CLUSTER NODES shows no failed node"))
	}
	switch failing, lonely := weakNodes(lines); {
	case len(failing) > 0:
		return one(warning(advice, "the other nodes cannot reach %s",
			strings.Join(failing, ", ")))
	case len(lonely) > 0:
		return one(warning("give each master a replica", "no replica of %s, so locks in its "+
			"slots fail if the master fails", strings.Join(lonely, ", ")))
	}
	return one(ok("each slot has a node, and each master has a replica"))
}

// clusterInfo returns the fields of CLUSTER INFO.
func (n *node) clusterInfo(ctx context.Context) (map[string]string, error) {
	text, err := n.text(ctx, "CLUSTER", "INFO")
	if err != nil {
		return nil, err
	}
	fields := parseFields(text)
	if fields["cluster_state"] == "" {
		return nil, errors.New("CLUSTER INFO has no field cluster_state")
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
