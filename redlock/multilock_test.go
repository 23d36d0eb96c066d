package redlock_test

import (
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/multilock"
	"holdfast/redlock"
	"holdfast/rlock"
)

func TestRedLockIsAPartOfAMultiLock(t *testing.T) {
	t.Parallel()
	servers := startNodes(t, 4)
	clients := newClients(t, servers, rlock.Options{})
	both := multilock.New(clients[3].NewLock("alone"), redlock.NewOn(name, atOnce, clients[:3]...))
	hold, err := both.TryLock(t.Context(), longWait, rlock.Watchdog)
	require.NoError(t, err)
	require.Equal(t, "alone+"+name, hold.Name())
	_, err = redlock.NewOn(name, atOnce, clients[:3]...).
		TryLock(t.Context(), rlock.NoWait, rlock.Watchdog)
	require.ErrorIs(t, err, rlock.ErrNotAcquired)
	nested, err := both.TryLock(hold.Context(), longWait, longLease/100)
	require.NoError(t, err)
	require.NoError(t, nested.Extend(t.Context(), longLease/50))
	require.NoError(t, both.Unlock(nested.Context()))

	// Again and again: the reply of the slowest node may come only after the quorum.
	eventually(t, func() bool {
		for _, i := range []int{0, 2} {
			_, err := clients[i].NewLock(name).ForceUnlock(t.Context())
			require.NoError(t, err)
		}
		return hold.Err() != nil
	}, "the hold of the MultiLock has not ended with that of the RedLock")
	require.ErrorIs(t, hold.Err(), rlock.ErrLost)
	require.ErrorContains(t, hold.Err(), `lock "`+name+`" lost: held on 1 of 3 nodes`)
	require.ErrorIs(t, hold.Unlock(t.Context()), rlock.ErrLost)
	eventually(t, func() bool { return len(keysOf(t, servers...)) == 0 }, "all servers are empty")
}

func TestServerHasTheSameNameInAnyOrder(t *testing.T) {
	t.Parallel()
	servers := startNodes(t, 3)
	c := newClients(t, servers, rlock.Options{})
	require.Equal(t, "a,b,c", redlock.NewOn(name, atOnce, c[2], c[0], c[1]).Server())

	unnamed := newClientOn(t, servers[0].Client(t, func(o *rueidis.ClientOption) {
		// which of its addresses rueidis names first is unknown
		o.Standalone.ReplicaAddress = []string{servers[1].Addr()}
		o.SendToReplicas = func(rueidis.Completed) bool { return false }
	}), rlock.Options{})
	lock := redlock.NewOn(name, atOnce, unnamed, c[1], c[2])
	require.Empty(t, lock.Server())
	_, err := multilock.New(lock, c[2].NewLock("alone")).
		TryLock(t.Context(), time.Second, rlock.Watchdog)
	require.ErrorIs(t, err, rlock.ErrInvalid)
	require.ErrorContains(t, err, "rlock.Options.Server")
}
