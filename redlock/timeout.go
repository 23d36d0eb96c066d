package redlock

import (
	"slices"
	"time"

	"holdfast/internal/seam"
)

// nodeTimeout returns for how long an answer of a node is waited for. What has been learned of the node's round trips belongs to
// its client, so that a lock that is made for one call has it as well. The limit leaves nine tenths of the lease to who asked.
func (l *Lock) nodeTimeout(node seam.Node, lease time.Duration) time.Duration {
	if l.options.NodeTimeout > 0 {
		return l.options.NodeTimeout
	}
	return node.Crew().Timeout(min(lease/10, node.CommandTimeout()))
}

// lasting returns for how long n of the answers can still come in time, each of which is waited for as long as left says; 0 if
// there are not so many. One node's long time-out must not make everybody wait who needs others as well.
func lasting(left []time.Duration, n int) time.Duration {
	if n <= 0 || n > len(left) {
		return 0
	}
	slices.Sort(left)
	return left[len(left)-n]
}
