//go:build redis

package rlock_test

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast/internal/logtest"
	"holdfast/internal/redistest"
	"holdfast/internal/wire"
	"holdfast/rlock"
)

func TestClusterWakesThroughShardedChannelsUnlessToldOtherwise(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3)
	sharded := knowsSharded(t, cluster)
	for _, mode := range []rlock.PubSubMode{
		rlock.PubSubAuto, rlock.PubSubSharded, rlock.PubSubClassic,
	} {
		if mode == rlock.PubSubSharded && !sharded {
			continue
		}
		publish, another := "publish", "spublish"
		if sharded && mode != rlock.PubSubClassic {
			publish, another = another, publish
		}
		client := newClientOn(t, cluster.Client(t), rlock.Options{PubSub: mode})
		other := newClientOn(t, cluster.Client(t), rlock.Options{PubSub: mode})
		for node, name := range oneLockPerNode(t, cluster) {
			for _, k := range []kind{kindNamed("reentrant"), kindNamed("read")} {
				name := fmt.Sprint("{", name, "}", mode, k.name)
				hold := take(t, k.contender(client, name), rlock.Lease(time.Minute))
				waiter := lockInBackground(t.Context(), k.lock(other, name), rlock.Lease(time.Minute))
				k.waitForListener(t, publish == "spublish", name, cluster.Nodes...)
				if publish == "publish" { // a node does not know who listens on others
					waitForQuiet(t, node)
					require.Zero(t, node.DoInt(t, "EXISTS", waitersKey(name)))
				}
				node.ResetStats(t)
				start := time.Now()
				unlock(t, hold)
				unlock(t, acquired(t, waiter))
				require.Less(t, time.Since(start), 3*time.Second, "%s: not woken", k.name)
				stats := node.CommandStats(t)
				require.Positive(t, stats[publish], k.name)
				require.Zero(t, stats[another], k.name)
			}
		}
	}
}

// waitForListener waits until a client listens on the channels of a lock, on one of the nodes.
func (k kind) waitForListener(t testing.TB, sharded bool, name string, nodes ...*redistest.Server) {
	t.Helper()
	prefix := ""
	if sharded {
		prefix = "SHARD"
	}
	eventually(t, func() bool {
		n := 0
		for _, node := range nodes {
			n += max(0, listenersOf(node, prefix, wire.Prefix(k.channel, name)+"*"))
		}
		return n == 1
	}, "one listener for "+name)
}

func TestDeadNodeCostsItsOwnLocksOnly(t *testing.T) {
	t.Parallel()
	const lease = 6 * time.Second // renewals on all nodes wait a sixth of it for the dead one
	// The other nodes continue without it.
	cluster := redistest.StartCluster(t, 3,
		redistest.WithArgs("--cluster-require-full-coverage", "no"))
	client := newClientOn(t, cluster.Client(t),
		rlock.Options{WatchdogLease: lease, CommandTimeout: 5 * time.Second})
	var doomed, others []*rlock.Hold
	for node, name := range oneLockPerNode(t, cluster) {
		for _, k := range kinds {
			hold := take(t, k.lock(client, "{"+name+"}"+k.name), rlock.Watchdog)
			if node == cluster.Nodes[2] {
				doomed = append(doomed, hold)
			} else {
				others = append(others, hold)
			}
		}
	}
	cluster.Nodes[2].Kill(t)

	var ended []<-chan time.Time
	for _, hold := range doomed {
		ended = append(ended, endedAt(hold))
	}
	for i, hold := range doomed {
		late := receive(t, ended[i], "the lock of a dead node was not lost").Sub(hold.Deadline())
		require.GreaterOrEqual(t, late, time.Duration(0), "before its deadline")
		require.Less(t, late, promptly)
		require.ErrorIs(t, hold.Unlock(), rlock.ErrLost)
	}
	requireKept(t, others, 3*lease/2, "a lock of another node was lost")
	for _, hold := range others {
		unlock(t, hold)
	}
}

func TestHungNodeHoldsUpNoCallerOfAnother(t *testing.T) {
	t.Parallel()
	// The other nodes continue without it, however long the test takes.
	cluster := redistest.StartCluster(t, 3,
		redistest.WithArgs("--cluster-require-full-coverage", "no"))
	client := newClientOn(t, cluster.Client(t), rlock.Options{CommandTimeout: 5 * time.Minute})
	// cycles has many callers send to a node at the same time.
	cycles := func(name string) {
		var callers sync.WaitGroup
		for i := range 64 {
			lock := client.NewLock(fmt.Sprintf("{%s}%d", name, i))
			callers.Go(func() {
				for range 10 {
					if hold, err := lock.Lock(t.Context(), rlock.Watchdog); assert.NoError(t, err) {
						assert.NoError(t, hold.Unlock())
					}
				}
			})
		}
		callers.Wait()
	}
	names := oneLockPerNode(t, cluster)
	hung := cluster.Nodes[2]
	cycles(names[hung])
	hung.Pause(t)
	stuck := make(chan error, 1000)
	for i := range cap(stuck) {
		lock := client.NewLock(fmt.Sprintf("{%s}%d", names[hung], i))
		go func() {
			hold, err := lock.Lock(t.Context(), rlock.Watchdog)
			if err == nil {
				err = hold.Unlock()
			}
			stuck <- err
		}()
	}
	for node, name := range names {
		if node != hung {
			cycles(name)
		}
	}
	require.Empty(t, stuck, "a caller of the hung node gave up meanwhile, so this took too long")
	hung.Resume(t)
	for range cap(stuck) {
		require.NoError(t, <-stuck)
	}
}

func TestUnservedSlotIsWaitedFor(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 2,
		redistest.WithArgs("--cluster-require-full-coverage", "no"))
	lock := newClientOn(t, cluster.Client(t), rlock.Options{}).NewLock("job")
	slot, node := fmt.Sprint(cluster.Slot(t, "job")), nodeOf(t, cluster, "job")
	for _, s := range cluster.Nodes {
		s.Do(t, "CLUSTER", "DELSLOTS", slot)
	}
	_, err := lock.TryLock(t.Context(), rlock.NoWait, rlock.Lease(time.Second))
	requireRefusal(t, err, "CLUSTERDOWN")
	waiter := lockInBackground(t.Context(), lock, rlock.Lease(time.Minute))
	node.Do(t, "CLUSTER", "ADDSLOTS", slot)
	unlock(t, acquired(t, waiter))
}

// Redisson before 3.28 may listen on the classic channel only.
func TestListenerOnAClassicChannelIsWokenAndLoggedOnce(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3)
	if !knowsSharded(t, cluster) {
		return // all channels are classic
	}
	var log logtest.Lines
	client := newClientOn(t, cluster.Client(t), rlock.Options{Logger: log.Logger()})
	heard := listen(t, nodeOf(t, cluster, "x"), wire.Channel("x"))
	for range 2 {
		unlock(t, take(t, client.NewLock("x"), rlock.Lease(time.Minute)))
		require.Equal(t, wire.Unlocked, heard.next(t)[2])
	}
	closeClient(t, client)
	require.Len(t, log.With("another client waits on a classic channel"), 1)
}

func TestClusterHandsLocksOverWithShardedChannels(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3)
	if !knowsSharded(t, cluster) {
		return // too old
	}
	k := kindNamed("reentrant")
	here := newClientOn(t, cluster.Client(t), rlock.Options{})
	elsewhere := newClientOn(t, cluster.Client(t), rlock.Options{})
	for node, name := range oneLockPerNode(t, cluster) {
		name := "{" + name + "}"
		k.warm(t, elsewhere, name)
		hold := take(t, k.lock(here, name), longLease)
		waiter := lockInBackground(t.Context(), k.lock(elsewhere, name), longLease)
		eventually(t, func() bool { return exists(node, waitersKey(name)) }, "it is not registered")
		waitForQuiet(t, node)
		monitor := node.Monitor(t)
		unlock(t, hold)
		next := acquired(t, waiter)
		seen := slices.DeleteFunc(verbs(monitor.Commands(t)),
			func(verb string) bool { return verb == "sunsubscribe" })
		// besides a late farewell of the previous waiter
		require.Equal(t, []string{"evalsha"}, seen, "the release alone")
		unlock(t, next)
	}
}

func TestReleaseOnCloseReleasesWhatOtherNodesHave(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3)
	client := newClientOn(t, cluster.Client(t), rlock.Options{ReleaseOnClose: true})
	names := oneLockPerNode(t, cluster)
	for _, name := range names {
		take(t, client.NewLock(name), longLease)
		take(t, client.NewLock("{"+name+"}:more"), longLease)
	}
	cluster.Nodes[0].Pause(t)
	closing := make(chan error, 1)
	go func() { closing <- client.Close(t.Context()) }()
	for _, node := range cluster.Nodes[1:] {
		waitUntilFree(t, node, names[node])
		waitUntilFree(t, node, "{"+names[node]+"}:more")
	}
	cluster.Nodes[0].Resume(t)
	require.NoError(t, receive(t, closing, "Close hangs"))
}

// move is the slot of {job} while it moves from one node to another.
type move struct {
	cluster  *redistest.Cluster
	slot     int
	from, to *redistest.Server
}

func newMove(t testing.TB) move {
	t.Helper()
	cluster := redistest.StartCluster(t, 2)
	m := move{cluster: cluster, slot: cluster.Slot(t, "{job}"), to: cluster.Nodes[0]}
	m.from = cluster.Owner(t, m.slot)
	if m.from == m.to {
		m.to = cluster.Nodes[1]
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
// keys: they are acquired and released when the slot has arrived. Renewals cannot wait that long,
// nor can one command renew locks of which some have moved.
func TestLockIsKeptWhileItsSlotMoves(t *testing.T) {
	t.Parallel()
	const lease = 6 * time.Second // two clusters at once start slowly on a small machine
	m := newMove(t)
	client := newClientOn(t, m.cluster.Client(t), rlock.Options{WatchdogLease: lease})
	holds, moved := make(map[string]*rlock.Hold), make(map[string]*rlock.Hold)
	for _, k := range kinds {
		holds[k.name] = take(t, k.lock(client, "{job}"+k.name), rlock.Watchdog)
		moved[k.name] = take(t, k.lock(client, "{job}moves "+k.name), rlock.Watchdog)
	}
	m.begin(t)
	m.moveKeys(t, m.from.DoStrings(t, "KEYS", "*{job}moves *")...)
	newer := take(t, client.NewLock("{job}newer"), rlock.Watchdog) // made on the new node
	renewed := slices.Concat(slices.Collect(maps.Values(holds)),
		slices.Collect(maps.Values(moved)), []*rlock.Hold{newer})
	requireKept(t, renewed, 2*lease, "lost while the slot was moving")
	nested, fresh := make(map[string]<-chan outcome), make(map[string]<-chan outcome)
	for _, k := range kinds {
		nested[k.name] = lockInBackground(holds[k.name].Context(), k.lock(client, "{job}"+k.name),
			rlock.Watchdog)
		fresh[k.name] = lockInBackground(t.Context(), k.lock(client, "{job}new "+k.name),
			rlock.Lease(time.Minute))
	}
	m.finish(t)
	requireKept(t, renewed, 2*lease, "lost after the slot had moved")
	unlock(t, newer)
	for _, k := range kinds {
		inner := acquired(t, nested[k.name])
		require.Equal(t, k.hash(inner.Owner(), 2), m.to.DoMap(t, "HGETALL", "{job}"+k.name))
		for _, hold := range []*rlock.Hold{
			inner, holds[k.name], moved[k.name], acquired(t, fresh[k.name]),
		} {
			unlock(t, hold)
		}
	}
	waitUntilFree(t, m.to)
	require.Empty(t, m.from.Keys(t))
}

// The keys of a lock move one after another. The lock waits for that, but others do not.
func TestReadLockIsKeptWhilePartOfItHasMoved(t *testing.T) {
	t.Parallel()
	m := newMove(t)
	client := newClientOn(t, m.cluster.Client(t), rlock.Options{WatchdogLease: 6 * time.Second})
	half := take(t, newReadLock(client, "{job}half"), rlock.Watchdog)
	kept := take(t, newReadLock(client, "{job}neighbour"), rlock.Watchdog)
	waitForRenewal(t, []*rlock.Hold{half, kept})
	m.begin(t)
	m.moveKeys(t, "{job}half:"+half.Owner()+":rwlock_timeout:1")
	waitForRenewal(t, []*rlock.Hold{kept})
	m.finish(t)
	waitForRenewal(t, []*rlock.Hold{half})
	unlock(t, half)
	unlock(t, kept)
}

func TestWaiterIsWokenOnTheNodeThatItsSlotMovedTo(t *testing.T) {
	t.Parallel()
	m := newMove(t)
	if !knowsSharded(t, m.cluster) {
		return // any node serves a classic channel
	}
	holder := newClientOn(t, m.cluster.Client(t), rlock.Options{})
	waiting := newClientOn(t, m.cluster.Client(t), rlock.Options{})
	k := kindNamed("reentrant")
	hold := take(t, holder.NewLock("{job}"), rlock.Lease(time.Minute))
	waiter := lockInBackground(t.Context(), waiting.NewLock("{job}"), rlock.Lease(time.Minute))
	k.waitForListener(t, true, "{job}", m.from)
	m.begin(t)
	m.finish(t)
	k.waitForListener(t, true, "{job}", m.to)
	start := time.Now()
	unlock(t, hold)
	unlock(t, acquired(t, waiter))
	require.Less(t, time.Since(start), 3*time.Second, "not woken")
}
