package redlock_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/redlock"
	"holdfast/rlock"
)

func TestEachNodeKnowsWhoItsClientIs(t *testing.T) {
	t.Parallel()
	servers := startNodes(t, 3)
	key := func(c *rlock.Client) string { return "holdfast_client:{" + c.ID() + "}" }
	known := func(s *redistest.Server, c *rlock.Client) bool {
		return s.DoInt(t, "EXISTS", key(c)) == 1
	}
	clients := make([]*rlock.Client, len(servers))
	for i, s := range servers {
		clients[i] = newClientOn(t, s.Client(t), rlock.Options{Label: called(i)})
	}
	hold := take(t, redlock.NewOn(name, atOnce, clients...), rlock.Watchdog)
	for i, s := range servers {
		eventually(t, func() bool { return known(s, clients[i]) }, "not on "+called(i))
		require.Equal(t, called(i), s.DoString(t, "HGET", key(clients[i]), "label"))
	}
	unlock(t, hold)
	for i, s := range servers {
		closeClient(t, clients[i])
		require.False(t, known(s, clients[i]))
	}
}
