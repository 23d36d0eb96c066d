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
	var master *Server
	require.Eventually(tb, func() bool {
		master = s.successor(from)
		if master == nil {
			s.order(from)
		}
		return master != nil
	}, failoverTimeout, 20*time.Millisecond, "no node takes the place of %s", from.Addr())
	require.Eventually(tb, func() bool { return !from.Replies() || from.copies() == master.port },
		failoverTimeout, 20*time.Millisecond, "%s does not become a replica", from.Addr())
	return master
}

// order tells the first Sentinel that may reply to promote another node than from. The Sentinel
// refuses while a failover is in progress, right after one, and while it sees no replica to
// promote. It abandons a failover whose replica is too slow: then it must be told again.
func (s *Sentinel) order(from *Server) {
	for _, watcher := range s.Watchers {
		if watcher.mayReply() {
			if s.masterSeenBy(watcher) == from {
				_, _ = watcher.Call("SENTINEL", "FAILOVER", sentinelName)
			}
			return
		}
	}
}

// WaitForFailover waits until another node than from is the master, and returns it: all Sentinels
// that reply name it, and it accepts writes. After [Server.Kill] or [Server.Pause] of the master
// this takes two or three seconds.
func (s *Sentinel) WaitForFailover(tb testing.TB, from *Server) *Server {
	tb.Helper()
	var master *Server
	require.Eventually(tb, func() bool {
		master = s.successor(from)
		return master != nil
	}, failoverTimeout, 20*time.Millisecond, "no node takes the place of %s", from.Addr())
	return master
}

// successor returns the node that all Sentinels that reply name instead of from, if it is a master.
func (s *Sentinel) successor(from *Server) *Server {
	var master *Server
	for _, watcher := range s.Watchers {
		if !watcher.Replies() {
			continue
		}
		named := s.masterSeenBy(watcher)
		if named == nil || named == from || master != nil && named != master {
			return nil
		}
		master = named
	}
	if master == nil || master.role() != "master" {
		return nil
	}
	return master
}
