//go:build redis

package rlock_test

import (
	"maps"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// move is the slot of {job} while it moves from one node to another.
type move struct {
	cluster  *redistest.Cluster
	slot     int
	from, to *redistest.Server
}

func newMove(t testing.TB, cluster *redistest.Cluster) move {
	t.Helper()
	m := move{cluster: cluster, slot: cluster.Slot(t, "{job}")}
	m.from = cluster.Owner(t, m.slot)
	for _, node := range cluster.Nodes {
		if node != m.from {
			m.to = node
		}
	}
	return m
}

func (m move) begin(t testing.TB) { m.cluster.BeginMove(t, m.slot, m.from, m.to) }

// moveKeys moves some keys of the slot before the others.
func (m move) moveKeys(t testing.TB, keys ...string) {
	t.Helper()
	host, port, err := net.SplitHostPort(m.to.Addr())
	require.NoError(t, err)
	m.from.Do(t, append([]string{"MIGRATE", host, port, "", "0", "5000", "KEYS"}, keys...)...)
}

func (m move) finish(t testing.TB) { m.cluster.FinishMove(t, m.slot, m.from, m.to) }

// While a slot moves, Redis refuses a command about several keys with TRYAGAIN unless one node has
// them all, and so one about a key that does not exist yet. All locks but the plain one have such
// keys: they are acquired and released when the slot has arrived. Renewals cannot wait that long.
func TestLockIsKeptWhileItsSlotMoves(t *testing.T) {
	t.Parallel()
	const lease = 6 * time.Second // two clusters at once start slowly on a small machine
	cluster := redistest.StartCluster(t, 2)
	client := newClientOn(t, cluster.Client(t), rlock.Options{WatchdogLease: lease})
	m := newMove(t, cluster)
	holds, explicit := make(map[string]*rlock.Hold), make(map[string]*rlock.Hold)
	for _, k := range kinds {
		holds[k.name] = take(t, k.lock(client, "{job}"+k.name), rlock.Watchdog)
		explicit[k.name] = take(t, k.lock(client, "{job}explicit "+k.name), time.Minute)
	}

	m.begin(t)
	requireKept(t, slices.Collect(maps.Values(holds)), 2*lease, "lost while the slot was moving")
	plain := kindNamed("reentrant")
	unlock(
		t,
		takeWith(holds[plain.name].Context(), t, plain.lock(client, "{job}"+plain.name),
			rlock.Watchdog),
	)
	// its key is created on the new node
	unlock(t, take(t, plain.lock(client, "{job}newer"), time.Minute))
	nested, fresh := make(map[string]<-chan outcome), make(map[string]<-chan outcome)
	for _, k := range kinds {
		nested[k.name] = lockInBackground(holds[k.name].Context(), k.lock(client, "{job}"+k.name),
			rlock.Watchdog)
		fresh[k.name] = lockInBackground(t.Context(), k.lock(client, "{job}new "+k.name),
			time.Minute)
	}
	m.finish(t)
	requireKept(t, slices.Collect(maps.Values(holds)), 2*lease, "lost after the slot had moved")
	for _, k := range kinds {
		inner := acquired(t, nested[k.name])
		require.Equal(t, k.hash(inner.Owner(), 2), m.to.DoMap(t, "HGETALL", "{job}"+k.name))
		for _, hold := range []*rlock.Hold{
			inner, holds[k.name], explicit[k.name], acquired(t, fresh[k.name]),
		} {
			unlock(t, hold)
		}
	}
	waitForNothingLeft(t, m.to)
	require.Empty(t, m.from.Keys(t))
}

func TestLocksOfOneSlotAreKeptWhileSomeHaveMoved(t *testing.T) {
	t.Parallel()
	const lease = 6 * time.Second // two clusters at once start slowly on a small machine
	cluster := redistest.StartCluster(t, 2)
	client := newClientOn(t, cluster.Client(t), rlock.Options{WatchdogLease: lease})
	m := newMove(t, cluster)
	var holds []*rlock.Hold
	for _, k := range kinds {
		holds = append(holds, take(t, k.lock(client, "{job}stays "+k.name), rlock.Watchdog),
			take(t, k.lock(client, "{job}moves "+k.name), rlock.Watchdog))
	}
	m.begin(t)
	m.moveKeys(t, m.from.DoStrings(t, "KEYS", "*{job}moves *")...)
	// Created on the new node: the old one replies ASK.
	holds = append(holds, take(t, client.NewLock("{job}moved"), rlock.Watchdog))
	require.Len(
		t,
		m.to.DoStrings(t, "KEYS", "{job}move*"),
		len(kinds)+2,
	) // a read lock has two keys

	// Now the reply to one command for all would be TRYAGAIN.
	requireKept(t, holds, 2*lease, "lost")
	m.finish(t)
	for _, hold := range holds {
		unlock(t, hold)
	}
}

// The keys of a lock move one after another. The lock waits for that, but others do not.
func TestReadLockIsKeptWhilePartOfItHasMoved(t *testing.T) {
	t.Parallel()
	const lease = 6 * time.Second
	for name, moves := range map[string]func(owner string) string{
		"the lock": func(string) string { return "{job}half" },
		"the first hold": func(owner string) string {
			return "{job}half:" + owner + ":rwlock_timeout:1"
		},
		"the second hold": func(owner string) string {
			return "{job}half:" + owner + ":rwlock_timeout:2"
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := redistest.StartCluster(t, 2)
			client := newClientOn(t, cluster.Client(t), rlock.Options{WatchdogLease: lease})
			m := newMove(t, cluster)
			half := newReadLock(client, "{job}half")
			neighbour := newReadLock(client, "{job}neighbour")
			outer, kept := take(t, half, rlock.Watchdog), take(t, neighbour, rlock.Watchdog)
			inner := takeWith(outer.Context(), t, half, rlock.Watchdog)
			waitForRenewal(t, []*rlock.Hold{outer, kept})
			m.begin(t)
			m.moveKeys(t, moves(outer.Owner()))
			waitForRenewal(t, []*rlock.Hold{kept})
			m.finish(t)
			waitForRenewal(t, []*rlock.Hold{outer})
			for _, hold := range []*rlock.Hold{inner, outer, kept} {
				unlock(t, hold)
			}
		})
	}
}

func TestWaiterIsWokenOnTheNodeThatItsSlotMovedTo(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]rlock.PubSubMode{
		"sharded": rlock.PubSubAuto, "classic": rlock.PubSubClassic,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := redistest.StartCluster(t, 2)
			sharded := mode == rlock.PubSubAuto && knowsSharded(t, cluster)
			l := waitInASlot(t, cluster, rlock.Options{PubSub: mode})
			before, after := cluster.Nodes, cluster.Nodes // any node serves a classic channel
			if sharded {
				before, after = []*redistest.Server{l.from}, []*redistest.Server{l.to}
			}
			l.waitForListeners(t, before, sharded)
			l.begin(t)
			l.finish(t)
			l.waitForListeners(t, after, sharded)
			l.requireWoken(t)
		})
	}
}

// waitingInASlot has locks of all kinds in one slot, each held and waited for.
type waitingInASlot struct {
	move
	kinds   []kind
	holds   []*rlock.Hold
	waiters []<-chan outcome
}

func waitInASlot(t *testing.T, cluster *redistest.Cluster, options rlock.Options) *waitingInASlot {
	t.Helper()
	l := &waitingInASlot{move: newMove(t, cluster), kinds: contests()}
	holder := newClientOn(t, cluster.Client(t), options)
	waiting := newClientOn(t, cluster.Client(t), options)
	for _, k := range l.kinds {
		l.holds = append(l.holds, take(t, k.contender(holder, "{job}"+k.name), time.Minute))
		l.waiters = append(l.waiters,
			lockInBackground(t.Context(), k.lock(waiting, "{job}"+k.name), time.Minute))
	}
	return l
}

// waitForListeners waits until each of the locks has a listener on one of the nodes; on an old
// cluster, on any.
func (l *waitingInASlot) waitForListeners(t *testing.T, nodes []*redistest.Server, sharded bool) {
	t.Helper()
	if sharded && !knowsSharded(t, l.cluster) {
		nodes, sharded = l.cluster.Nodes, false
	}
	for _, k := range l.kinds {
		if k.name != "write" { // its pattern also matches the channel of writers behind readers
			k.waitForListener(t, nodes, sharded, "{job}"+k.name)
		}
	}
}

// requireWoken requires that each waiter is woken when its lock is released.
func (l *waitingInASlot) requireWoken(t *testing.T) {
	t.Helper()
	for i, k := range l.kinds {
		start := time.Now()
		unlock(t, l.holds[i])
		unlock(t, acquired(t, l.waiters[i]))
		require.Less(t, time.Since(start), 3*time.Second, "%s: not woken", k.name)
	}
}
