package redlock_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/printable"
	"holdfast/redlock"
	"holdfast/rlock"
)

func TestQuorumErrorEscapesAndShortensOwners(t *testing.T) {
	t.Parallel()
	servers := startNodes(t, 3)
	clients := newClients(t, servers, rlock.Options{})
	var locks []*rlock.Lock
	for i, s := range servers {
		s.Do(t, "HSET", name, "\x1b[2J\u202e\n"+strings.Repeat("x", 1<<20), "1")
		locks = append(locks, clients[i].NewLock(name))
	}
	_, err := redlock.New(locks...).WithOptions(atOnce).TryLock(t.Context(), rlock.NoWait, longWait)
	require.ErrorAs(t, err, new(*redlock.QuorumError))
	require.ErrorContains(t, err, `\x1b[2J\u202e\n`)
	require.Equal(t, printable.Text(err.Error()), err.Error())
	require.Less(t, len(err.Error()), 1000)
}
