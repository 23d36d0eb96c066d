package redlock

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unique"

	"holdfast/internal/hooks"
	"holdfast/rlock"
)

// setNodes makes the locks the nodes of l, or returns why they cannot be.
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
			return fmt.Errorf("%w: two nodes are on one server (%s), so they are not independent",
				rlock.ErrInvalid, server)
		}
		clients[node.Client()], known[server] = true, true
		l.nodes = append(l.nodes, node)
		if lease, first := node.WatchdogLease(), l.nodes[0].WatchdogLease(); lease != first {
			return fmt.Errorf("%w: the clients of the nodes have different "+
				"rlock.Options.WatchdogLease: %v and %v", rlock.ErrInvalid, first, lease)
		}
		servers = append(servers, server)
		nodes = append(nodes, nodeID(node))
	}
	slices.Sort(nodes) // the order of the arguments does not matter
	l.identity = unique.Make(strings.Join(nodes, "\n"))
	if slices.Sort(servers); servers[0] != "" {
		l.server = strings.Join(servers, ",")
	}
	return nil
}

// nameOf returns the name that all the locks have, or all their names, sorted.
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

// nodeID identifies a node by its client and its name.
func nodeID(node hooks.Node) string { return node.Client() + " " + node.Name() }

// serverName returns the name of node i's server for errors.
func (l *Lock) serverName(i int) string {
	return cmp.Or(l.nodes[i].Server(), "node "+strconv.Itoa(i))
}

// nodeTimeout returns how long to wait for a reply of a node. The node's client remembers the round
// trips, for locks that are made for one call. By default at least nine tenths of a lease of 50 ms
// or more are left for the caller.
//
// Measured round trips never take it below a small part of the lease: in quiet times they are
// short, and in a burst of locks, or after a pause of this process, they take many times as long.
func (l *Lock) nodeTimeout(node hooks.Node, lease time.Duration) time.Duration {
	if l.options.NodeTimeout > 0 {
		return l.options.NodeTimeout
	}
	least := min(max(lease/200, 5*time.Millisecond), 50*time.Millisecond)
	return node.Pool().Timeout(least, min(lease/10, node.CommandTimeout()))
}

// nthLongest returns the n-th longest of the times left, for which n replies may still arrive; 0 if
// there are fewer than n. A single longer time-out does not delay a result that needs n replies. It
// sorts left.
func nthLongest(left []time.Duration, n int) time.Duration {
	if n <= 0 || n > len(left) {
		return 0
	}
	slices.Sort(left)
	return left[len(left)-n]
}
