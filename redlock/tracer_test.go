package redlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/redlock"
	"holdfast/rlock"
)

func TestTracerHearsWhoRefusedARound(t *testing.T) {
	t.Parallel()
	tr := new(locktest.Tracer)
	servers := startNodes(t, 3)
	clients := newClients(t, servers, rlock.Options{Tracer: tr})
	others := newClients(t, servers, rlock.Options{})
	held := take(t, redlock.NewOn("order", atOnce, others...), longLease)
	_, err := redlock.NewOn("order", atOnce, clients...).
		TryLock(t.Context(), 300*time.Millisecond, longLease)
	require.ErrorIs(t, err, rlock.ErrNotAcquired)
	round := locktest.Heard[rlock.RoundEnd](tr)[0]
	require.GreaterOrEqual(t, len(round.Refused), 2)
	for _, node := range round.Refused {
		require.NotEmpty(t, node.Server)
		require.ErrorAs(t, node.Err, new(*rlock.HeldError))
	}
	require.Len(t, locktest.Heard[rlock.WaitStart](tr), 1)
	require.Len(t, locktest.Heard[rlock.WaitEnd](tr), 1)
	require.Positive(t, locktest.Heard[rlock.AcquireEnd](tr)[0].Waited)
	require.Empty(t, locktest.Heard[rlock.NodeFailed](tr), "a node with another holder works")
	unlock(t, held)
}
