package integration

import (
	"testing"

	"holdfast/internal/redistest"
)

// Failover has a replica replace the master of the lock name, and returns it when all servers that
// reply know. The old master becomes a replica, now or when it is back. A cluster hands over
// without loss as long as the old master replies. Sentinels do not: what it has not replicated is
// lost. A master that was killed or paused is replaced, too: by the Sentinels themselves, or in a
// cluster by this call.
func (s *Servers) Failover(tb testing.TB, name string) *redistest.Server {
	tb.Helper()
	switch {
	case s.group != nil:
		return s.group.Failover(tb)
	case s.cluster != nil:
		return s.cluster.Failover(tb, s.Home(tb, name))
	}
	s.cannot(tb, "fail over: nobody promotes its replicas, if it has any")
	return nil
}

// MoveSlot moves the slot of the lock name, with its keys, to another master of the cluster, and
// returns that one when all servers know.
func (s *Servers) MoveSlot(tb testing.TB, name string) *redistest.Server {
	tb.Helper()
	if s.cluster == nil {
		s.cannot(tb, "move a slot: it has none")
	}
	from := s.Home(tb, name)
	for _, to := range s.Masters(tb) {
		if to != from {
			s.cluster.MoveSlot(tb, s.cluster.Slot(tb, name), from, to)
			return to
		}
	}
	s.cannot(tb, "move a slot: one master is all that is left")
	return nil
}

// Heal undoes all faults and returns when the servers are as good as new: those that were paused,
// cut off or killed are back, replicas are in step with the present masters, and the cluster serves
// all slots. Lost data stays lost. A healthy topology is left alone.
func (s *Servers) Heal(tb testing.TB) {
	tb.Helper()
	for _, server := range append(s.Sentinels(), s.All()...) {
		if !server.Running() {
			server.Restart(tb)
			continue
		}
		server.Resume(tb)
		server.Rejoin(tb)
	}
	if s.cluster != nil {
		s.cluster.WaitForHealth(tb)
		return
	}
	if s.group != nil {
		s.group.WaitForHealth(tb)
		return
	}
	if s.replica != nil {
		redistest.WaitForReplica(tb, s.masters[0], s.replica)
	}
}
