package redlock

import (
	"slices"
	"time"

	"holdfast/internal/hooks"
)

// nodeTimeout returns how long to wait for a reply of a node. The node's client remembers the round
// trips, for locks that are made for one call. By default at least nine tenths of a lease of 50 ms
// or more are left for the caller.
//
// Measured round trips never take it below leastTimeout: in quiet times they are short, and in a
// burst of locks, or after a pause of this process, they take many times as long.
func (l *Lock) nodeTimeout(node hooks.Node, lease time.Duration) time.Duration {
	if l.options.NodeTimeout > 0 {
		return l.options.NodeTimeout
	}
	return node.Pool().Timeout(leastTimeout(lease), min(lease/10, node.CommandTimeout()))
}

// leastTimeout returns the least time to wait for a reply: a small part of the lease.
func leastTimeout(lease time.Duration) time.Duration {
	return min(max(lease/200, 5*time.Millisecond), 50*time.Millisecond)
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
