package redistest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Failover has the Sentinels promote a replica, and returns it like [Sentinel.WaitForFailover]. By
// then the old master is its replica. What the old master had not passed on is lost, and so is what
// was written to it before it knew.
func (s *Sentinel) Failover(tb testing.TB) *Server {
	tb.Helper()
	from := s.Master(tb)
	if !from.mayReply() {
		return s.WaitForFailover(tb, from) // they do so by themselves
	}
	return s.replace(tb, from)
}

// replace has the Sentinels promote another node than from, unless they did so by themselves: on a
// busy machine they may take a master for dead.
func (s *Sentinel) replace(tb testing.TB, from *Server) *Server {
	tb.Helper()
	require.Eventually(tb, func() bool {
		for _, watcher := range s.Watchers {
			if watcher.replies() {
				if named := s.masterSeenBy(watcher); named != nil && named != from {
					return true
				}
				// It refuses while it sees no replica to promote, or right after another failover.
				_, err := watcher.Call("SENTINEL", "FAILOVER", sentinelName)
				return err == nil
			}
		}
		return false
	}, failoverTimeout, 20*time.Millisecond, "the Sentinel refuses to fail over")
	master := s.WaitForFailover(tb, from)
	require.Eventually(tb, func() bool { return !from.replies() || from.copies() == master.port },
		failoverTimeout, 20*time.Millisecond, "%s does not become a replica", from.Addr())
	return master
}

// WaitForFailover waits until another node than from is the master, and returns it: all Sentinels
// that reply name it, and it accepts writes. After [Server.Kill] or [Server.Pause] of the master
// this takes two or three seconds.
func (s *Sentinel) WaitForFailover(tb testing.TB, from *Server) *Server {
	tb.Helper()
	var master *Server
	require.Eventually(tb, func() bool {
		master = nil
		for _, watcher := range s.Watchers {
			if !watcher.replies() {
				continue
			}
			named := s.masterSeenBy(watcher)
			if named == nil || named == from || master != nil && named != master {
				return false
			}
			master = named
		}
		return master != nil && master.role() == "master"
	}, failoverTimeout, 20*time.Millisecond, "no node takes the place of %s", from.Addr())
	return master
}
