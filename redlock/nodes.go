package redlock

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unique"

	"holdfast/internal/hooks"
	"holdfast/rlock"
)

// join makes the locks the nodes.
func (l *Lock) setNodes(locks []*rlock.Lock) error {
	if len(locks) == 0 {
		return fmt.Errorf("%w: no nodes", rlock.ErrInvalid)
	}
	var servers, nodes []string
	clients, known := make(map[string]bool), make(map[string]bool)
	for i, lock := range locks {
		if lock == nil {
			return fmt.Errorf("%w: node %d of %d is nil", rlock.ErrInvalid, i+1, len(locks))
		}
		node, err := hook.Node(lock)
		if err != nil {
			return err
		}
		server := node.Server()
		if clients[node.Client()] || server != "" && known[server] {
			return fmt.Errorf(
				"%w: two nodes are on one server (%s), so they are not independent",
				rlock.ErrInvalid,
				server,
			)
		}
		clients[node.Client()], known[server] = true, true
		l.nodes = append(l.nodes, node)
		if lease, first := node.WatchdogLease(), l.nodes[0].WatchdogLease(); lease != first {
			return fmt.Errorf(
				"%w: the clients of the nodes have different rlock.Options.WatchdogLease: %v and %v",
				rlock.ErrInvalid,
				first,
				lease,
			)
		}
		servers = append(servers, server)
		nodes = append(nodes, nodeID(node))
	}
	slices.Sort(nodes) // they are the same nodes in any order
	l.identity = unique.Make(strings.Join(nodes, "\n"))
	if slices.Sort(servers); servers[0] != "" {
		l.server = strings.Join(servers, ",")
	}
	return nil
}

// nameOf is the name that all the locks have, or all their names, in whatever order they were
// given.
func nameOf(locks []*rlock.Lock) string {
	var names []string
	for _, lock := range locks {
		if lock != nil && !slices.Contains(names, lock.Name()) {
			names = append(names, lock.Name())
		}
	}
	slices.Sort(names)
	return strings.Join(names, ",")
}

// identify names a node. Two are the same one if they are of one client and one name.
func nodeID(node hooks.Node) string { return node.Client() + " " + node.Name() }

// called is what node i's server is called in errors.
func (l *Lock) serverName(i int) string {
	return cmp.Or(l.nodes[i].Server(), "node "+strconv.Itoa(i))
}
