package redistest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// WaitForHealth waits until all nodes run as they should: they serve all slots, with as many
// masters as in the beginning, and every replica is in sync with its master. It does not start,
// resume or rejoin any.
func (c *Cluster) WaitForHealth(tb testing.TB) {
	tb.Helper()
	require.Eventually(tb, c.healthy, healthTimeout, 20*time.Millisecond,
		"the cluster does not become healthy")
}

func (c *Cluster) healthy() bool {
	byPort := map[int]*Server{}
	for _, node := range c.All() {
		byPort[node.port] = node
	}
	for _, node := range c.All() {
		if !node.Replies() || !node.joined(len(c.Nodes)) {
			return false
		}
		switch node.role() {
		case "master":
		case "slave":
			if master := byPort[node.copies()]; master == nil || !master.serves(node) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// WaitForHealth waits until all run as they should: all Sentinels name one master, with which all
// other nodes are in sync, and find each other. It does not start, resume or rejoin any.
func (s *Sentinel) WaitForHealth(tb testing.TB) {
	tb.Helper()
	for _, watcher := range s.Watchers {
		watcher.hurry() // it may have been restarted
	}
	require.Eventually(tb, s.healthy, healthTimeout, 20*time.Millisecond,
		"the Sentinels and their servers do not become healthy")
}

func (s *Sentinel) healthy() bool {
	master := s.masterSeenBy(s.Watcher)
	if master == nil || master.role() != "master" {
		return false
	}
	for _, node := range s.Nodes {
		if node != master && (node.copies() != master.port || !master.serves(node)) {
			return false
		}
	}
	for _, watcher := range s.Watchers {
		if s.masterSeenBy(watcher) != master || !s.ready(watcher) {
			return false
		}
	}
	return true
}
