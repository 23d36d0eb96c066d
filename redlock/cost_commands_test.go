package redlock_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/redlock"
	"holdfast/rlock"
)

func TestEachStepIsOneCommandForEachNode(t *testing.T) {
	t.Parallel()
	servers := startNodes(t, 5)
	clients := newClients(t, servers, rlock.Options{})
	warm(t, clients)
	l := redlock.NewOn(name, atOnce, clients...)
	counted := func(what string, commands int, step func()) {
		t.Helper()
		monitors := make([]*redistest.Monitor, len(servers))
		for i, s := range servers {
			monitors[i] = s.Monitor(t)
		}
		step()
		for i, m := range monitors {
			scripts := 0
			for _, command := range m.Commands(t) {
				if strings.HasPrefix(strings.ToUpper(command[0]), "EVAL") {
					scripts++
				}
			}
			require.Equal(t, commands, scripts, "%s on node %s", what, called(i))
		}
	}
	var hold, nested *rlock.Hold
	everywhere := func() {
		eventually(t, func() bool { return l.Parts(hold) == 5 && l.Asked(hold) == 0 },
			"all have answered")
	}
	counted("Lock", 1, func() { hold = take(t, l, longLease); everywhere() })
	counted("nested Lock", 1, func() {
		nested = takeWith(hold.Context(), t, l, longLease)
		eventually(t, func() bool { return count(servers) == 5 && levelsAre(t, servers, "2") },
			"all know of the level")
	})
	counted("Unlock of a level", 0, func() { unlock(t, nested) })
	counted("Extend", 1, func() {
		require.NoError(t, hold.Extend(t.Context(), 2*longLease))
		eventually(t, func() bool {
			return !slices.ContainsFunc(servers, func(s *redistest.Server) bool {
				return s.DoInt(t, "PTTL", name) <= longLease.Milliseconds()
			})
		}, "all have extended it")
	})
	counted("Unlock", 1, func() {
		unlock(t, hold)
		waitUntilFree(t, servers...)
	})
}

// levelsAre reports whether all servers have that many levels of the lock.
func levelsAre(t *testing.T, servers []*redistest.Server, levels string) bool {
	t.Helper()
	for _, s := range servers {
		if values := s.DoStrings(t, "HVALS", name); len(values) != 1 || values[0] != levels {
			return false
		}
	}
	return true
}
