package rlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// move is a slot on its way from one node to another.
type move struct {
	cluster  *redistest.Cluster
	slot     int
	from, to *redistest.Server
}

func newMove(t testing.TB, cluster *redistest.Cluster, lock string) move {
	t.Helper()
	m := move{cluster: cluster, slot: cluster.Slot(t, lock)}
	m.from = cluster.Owner(t, m.slot)
	for _, node := range cluster.Nodes {
		if node != m.from {
			m.to = node
		}
	}
	return m
}

func (m move) begin(t testing.TB)  { m.cluster.BeginMove(t, m.slot, m.from, m.to) }
func (m move) finish(t testing.TB) { m.cluster.FinishMove(t, m.slot, m.from, m.to) }

func TestLockIsKeptWhileItsSlotMoves(t *testing.T) {
	t.Parallel()
	const lease = 600 * time.Millisecond
	cluster := redistest.StartCluster(t, 2)
	client := newClientOn(t, cluster.Client(t), rlock.Options{WatchdogLease: lease})
	lock := client.NewLock("job")
	hold := take(t, lock, rlock.Watchdog)
	explicit := take(t, client.NewLock("{job}explicit"), time.Minute)
	m := newMove(t, cluster, "job")

	m.begin(t)
	require.Never(t, func() bool { return !hold.Valid() }, 2*lease, lease/10, "lost while the slot was moving")
	nested := takeWith(hold.Context(), t, lock, rlock.Watchdog)
	unlock(t, take(t, client.NewLock("{job}new"), time.Minute)) // its key is made on the new node
	m.finish(t)
	require.Never(t, func() bool { return !hold.Valid() }, 2*lease, lease/10, "lost after the slot had moved")
	require.Equal(t, map[string]string{hold.Owner(): "2"}, m.to.DoMap(t, "HGETALL", "job"))
	unlock(t, nested)
	unlock(t, hold)
	unlock(t, explicit)
	require.Zero(t, m.to.DoInt(t, "DBSIZE"))
	require.Zero(t, m.from.DoInt(t, "DBSIZE"))
}

func TestLocksOfOneSlotAreKeptWhileSomeHaveMoved(t *testing.T) {
	t.Parallel()
	const lease = 600 * time.Millisecond
	cluster := redistest.StartCluster(t, 2)
	client := newClientOn(t, cluster.Client(t), rlock.Options{WatchdogLease: lease})
	stays := take(t, client.NewLock("{job}stays"), rlock.Watchdog)
	m := newMove(t, cluster, "{job}stays")
	m.begin(t)
	moved := take(t, client.NewLock("{job}moved"), rlock.Watchdog) // on the new node: the old one says ASK
	require.EqualValues(t, 1, m.from.DoInt(t, "DBSIZE"))
	require.EqualValues(t, 1, m.to.DoInt(t, "DBSIZE"))

	// Now one command for both would be answered with TRYAGAIN.
	require.Never(t, func() bool { return !stays.Valid() || !moved.Valid() }, 3*lease, lease/10, "lost")
	m.finish(t)
	unlock(t, stays)
	unlock(t, moved)
}

func TestWaiterIsWokenOnTheNodeThatItsSlotMovedTo(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]rlock.PubSubMode{"sharded": rlock.PubSubAuto, "classic": rlock.PubSubClassic} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := redistest.StartCluster(t, 2)
			options := rlock.Options{PubSub: mode}
			hold := take(t, newClientOn(t, cluster.Client(t), options).NewLock("job"), time.Minute)
			waiter := lockInBackground(t.Context(), newClientOn(t, cluster.Client(t), options).NewLock("job"), time.Minute)
			m := newMove(t, cluster, "job")
			numsub, where := "SHARDNUMSUB", []*redistest.Server{m.to}
			if mode == rlock.PubSubClassic {
				numsub, where = "NUMSUB", cluster.Nodes
			}
			await := func(nodes ...*redistest.Server) {
				eventually(t, func() bool {
					n := 0
					for _, node := range nodes {
						n += max(0, listening(node, numsub, "job"))
					}
					return n == 1
				}, "nobody listens")
			}
			if mode == rlock.PubSubAuto {
				await(m.from)
			} else {
				await(where...)
			}
			m.begin(t)
			m.finish(t)
			await(where...)

			start := time.Now()
			unlock(t, hold)
			unlock(t, acquired(t, waiter))
			require.Less(t, time.Since(start), 3*time.Second, "not woken")
		})
	}
}

func TestReleaseWhileTheWaitersSlotMovesIsNotMissed(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 2)
	hold := take(t, newClientOn(t, cluster.Client(t), rlock.Options{}).NewLock("job"), time.Minute)
	waiter := lockInBackground(t.Context(), newClientOn(t, cluster.Client(t), rlock.Options{}).NewLock("job"), time.Minute)
	m := newMove(t, cluster, "job")
	eventually(t, func() bool { return listening(m.from, "SHARDNUMSUB", "job") == 1 }, "nobody listens")

	m.begin(t)
	m.finish(t)
	start := time.Now()
	unlock(t, hold) // most likely nobody listens yet
	unlock(t, acquired(t, waiter))
	require.Less(t, time.Since(start), 3*time.Second, "not woken")
}
