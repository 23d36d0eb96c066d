package redlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/redlock"
	"holdfast/rlock"
)

func TestTracerHearsOfARedLock(t *testing.T) {
	t.Parallel()
	tr := new(locktest.Tracer)
	clients := newClients(t, startNodes(t, 3), rlock.Options{Tracer: tr})
	lock := redlock.NewOn("order", atOnce, clients...)
	hold := take(t, lock, rlock.Watchdog)
	end := locktest.Heard[rlock.AcquireEnd](tr)[0]
	require.Equal(t, "redlock", end.Lock.Kind)
	require.Equal(t, lock.Server(), end.Lock.Server)
	require.Equal(t, rlock.Free, end.How)
	require.Equal(t, 1, end.Requests)
	round := locktest.Heard[rlock.RoundEnd](tr)[0]
	require.Equal(t, 1, round.Round)
	require.Equal(t, 2, round.Want)
	require.GreaterOrEqual(t, round.Granted, 2)
	require.Positive(t, round.Took)
	require.Empty(t, round.Refused)

	inner := takeWith(hold.Context(), t, lock, rlock.Watchdog)
	require.Equal(t, rlock.Reentered, locktest.Heard[rlock.AcquireEnd](tr)[1].How)
	starts := locktest.Heard[rlock.HoldStart](tr)
	require.Len(t, starts, 2, "the locks on the nodes are not told")
	require.Equal(t, []bool{false, true}, []bool{starts[0].Nested, starts[1].Nested})
	require.Positive(t, time.Until(starts[0].Deadline))
	unlock(t, hold)
	unlock(t, inner)
	ends := locktest.Heard[rlock.HoldEnd](tr)
	require.Len(t, ends, 2)
	require.Equal(t, []bool{false, true}, []bool{ends[0].Last, ends[1].Last})
	require.Positive(t, ends[1].Margin)
	require.Empty(t, locktest.Heard[rlock.NodeFailed](tr))
}

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
