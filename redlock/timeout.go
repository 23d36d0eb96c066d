package redlock

import (
	"slices"
	"time"

	"holdfast/internal/hooks"
)

// nodeTimeout returns how long an answer of a node is waited for. The round trips are remembered by
// the node's client, so that a lock made for one call has them too. By default at least nine
// tenths of a lease of 50 ms or more are left for the caller.
//
// What was learned makes it longer than leastTimeout only: in quiet times round trips are short,
// and a burst of locks, or a pause of this process, takes many times as long.
func (l *Lock) nodeTimeout(node hooks.Node, lease time.Duration) time.Duration {
	if l.options.NodeTimeout > 0 {
		return l.options.NodeTimeout
	}
	return node.Pool().Timeout(leastTimeout(lease), min(lease/10, node.CommandTimeout()))
}

// leastTimeout returns how long an answer is waited for at least: a small part of the lease.
func leastTimeout(lease time.Duration) time.Duration {
	return min(max(lease/200, 5*time.Millisecond), 50*time.Millisecond)
}

// lasting returns for how long n answers may still come in time, given how much time each of them
// has; 0 if there are fewer than n. So the longest of several does not delay a result that needs
// others.
func nthLongest(left []time.Duration, n int) time.Duration {
	if n <= 0 || n > len(left) {
		return 0
	}
	slices.Sort(left)
	return left[len(left)-n]
}
