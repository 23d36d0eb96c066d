//go:build redis

package redlock_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/redlock"
	"holdfast/rlock"
)

func TestTracerHearsOfANodeThatHangs(t *testing.T) {
	t.Parallel()
	tr := new(locktest.Tracer)
	servers := startNodes(t, 3)
	clients := newClients(t, servers, rlock.Options{Tracer: tr})
	warm(t, clients)
	lock := redlock.NewOn("order", atOnce, clients...)
	servers[2].Pause(t)
	hung := clients[2].NewLock("order").Server()
	of := func(server string) (found []rlock.NodeFailed) {
		for _, d := range locktest.Heard[rlock.NodeFailed](tr) {
			if d.Server == server {
				found = append(found, d)
			}
		}
		return found
	}
	// Once it has not replied for its time-out, it is not asked any more.
	eventually(t, func() bool {
		unlock(t, take(t, lock, longLease))
		return len(of(hung)) > 0
	}, "nobody was told that the node hangs")
	failed := of(hung)[0]
	require.Equal(t, "acquire", failed.Operation)
	require.ErrorContains(t, failed.Err, "has not replied")
	require.ErrorIs(t, failed.Err, redlock.ErrNoReply)
	require.Equal(t, "order", failed.Lock.Name)
	rounds := locktest.Heard[rlock.RoundEnd](tr)
	refused := rounds[len(rounds)-1].Refused
	require.Len(t, refused, 1)
	require.Equal(t, hung, refused[0].Server)
	servers[2].Resume(t)
	for _, c := range clients[:2] {
		require.Empty(t, of(c.NewLock("order").Server()))
	}
}
