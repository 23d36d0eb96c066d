package redlock

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unique"

	"holdfast/internal/hooks"
	"holdfast/rlock"
)

// setNodes makes the locks the nodes of l, or returns why they cannot be.
func (l *Lock) setNodes(locks []*rlock.Lock) error {
	if len(locks) == 0 {
		return fmt.Errorf("%w: no nodes", rlock.ErrInvalid)
	}
	var nodes []hooks.Node
	var servers, ids []string
	for i, lock := range locks {
		if lock == nil {
			return fmt.Errorf("%w: node %d of %d is nil", rlock.ErrInvalid, i+1, len(locks))
		}
		node, err := hook.Node(lock)
		if err != nil {
			return err
		}
		server := node.Server()
		twin := slices.IndexFunc(nodes, func(n hooks.Node) bool {
			return n.Client() == node.Client() || server != "" && n.Server() == server
		})
		if twin >= 0 {
			return fmt.Errorf("%w: nodes %d and %d are on one server (%s), so they are not "+
				"independent", rlock.ErrInvalid, twin+1, i+1, cmp.Or(server, "the same client"))
		}
		nodes, servers = append(nodes, node), append(servers, server)
		ids = append(ids, nodeID(node))
		if lease, first := node.WatchdogLease(), nodes[0].WatchdogLease(); lease != first {
			return fmt.Errorf("%w: the clients of the nodes have different "+
				"rlock.Options.WatchdogLease: %v and %v", rlock.ErrInvalid, first, lease)
		}
	}
	slices.Sort(ids) // the order of the arguments does not matter
	l.nodes, l.identity = nodes, unique.Make(strings.Join(ids, "\n"))
	if slices.Sort(servers); servers[0] != "" {
		l.server = strings.Join(servers, ",")
	}
	return nil
}

// nodeID identifies a node by its client and its name.
func nodeID(node hooks.Node) string { return node.Client() + " " + node.Name() }

// nthLast returns the n-th last of some times, which it sorts; zero if there are fewer.
func nthLast[T any](times []T, n int, compare func(a, b T) int) (nth T) {
	if n > 0 && n <= len(times) {
		slices.SortFunc(times, compare)
		nth = times[len(times)-n]
	}
	return nth
}
