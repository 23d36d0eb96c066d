//go:build redis

package multilock_test

import (
	"net"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/luashim"
	"holdfast/internal/redistest"
	"holdfast/multilock"
	"holdfast/rlock"
)

// What only real servers do: permissions, replicas, clusters, Sentinel.

// commands returns how many commands of a name the servers got since the monitors were last read.
func commands(t *testing.T, name string, monitors ...*redistest.Monitor) (n int) {
	t.Helper()
	for _, m := range monitors {
		for _, command := range m.Commands(t) {
			if command[0] == name {
				n++
			}
		}
	}
	return n
}

// plain returns a MultiLock of plain locks. The servers know its scripts.
func plain(t *testing.T, redis rueidis.Client, names ...string) *multilock.Lock {
	t.Helper()
	c := newClientOn(t, redis, rlock.Options{})
	lock := multilock.NewOn(c, names...)
	learn(t, lock, c.NewLock(names[0]))
	return lock
}

func TestPartThatIsRefusedFailsTheWholeAfterTheOthersWereReleased(t *testing.T) {
	t.Parallel()
	first, second := redistest.Start(t), redistest.Start(t)
	second.Do(t, "ACL", "SETUSER", "app", "on", ">secret", "+@all", "allchannels", "~a", "~b")
	client := newClientOn(t, first.Client(t), rlock.Options{Server: "first"})
	limited := newClientOn(t, second.Client(t, func(o *rueidis.ClientOption) {
		o.Username, o.Password = "app", "secret"
	}), rlock.Options{Server: "second"})
	a := client.NewLock("a")
	alone := multilock.New(a, limited.NewLock("forbidden"))
	batch := multilock.New(a, limited.NewLock("a"), limited.NewLock("b"), limited.NewLock("forbidden"))
	for _, lock := range []*multilock.Lock{alone, batch} {
		// However long the caller would wait.
		_, err := lock.Lock(t.Context(), longLease)
		var refusal *rlock.ServerError
		require.ErrorAs(t, err, &refusal)
		require.Equal(t, "NOPERM", refusal.Code)
		require.NotEmpty(t, refusal.Advice)
		require.NotErrorIs(t, err, rlock.ErrNotAcquired)
		require.ErrorContains(t, err, `lock "forbidden"`)
		require.Empty(t, left(t, first, second))
		_, err = lock.TryLock(t.Context(), rlock.NoWait, longLease)
		require.ErrorContains(t, err, "NOPERM")
		require.Empty(t, left(t, first, second))
	}
}

// Because of one key the server refuses the script for all of them. The others are free, and Unlock
// reports the one.
func TestPartThatCannotBeReleasedDoesNotKeepTheOthers(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	lock := plain(t, s.Client(t), "a", "b", "c")
	for code, spoil := range map[string]func(){
		"NOPERM": func() { s.Do(t, "ACL", "SETUSER", "default", "resetkeys", "~a", "~c") },
		"WRONGTYPE": func() {
			s.Do(t, "DEL", "b")
			s.Do(t, "SET", "b", "a page")
		},
	} {
		hold := take(t, lock, longLease)
		spoil()
		err := hold.Unlock()
		s.Do(t, "ACL", "SETUSER", "default", "allkeys")
		require.ErrorContains(t, err, code)
		require.ErrorContains(t, err, `lock "b"`)
		require.NotContains(t, err.Error(), `lock "a"`)
		require.Equal(t, []string{"b"}, left(t, s))
		s.Do(t, "DEL", "b")
	}
}

// A lock that waits for replicas is acquired by a command of its own, and released by one.
func TestPlainLocksOfAClientThatWaitsForReplicasAreNoBatch(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t, redistest.WithHostNetwork(), redistest.WithFastReplicas())
	redistest.StartReplica(t, master)
	c := newClientOn(t, master.Client(t),
		rlock.Options{SyncReplicas: 1, SyncTimeout: time.Duration(longLease / 10)})
	lock := multilock.NewOn(c, "a", "b")
	learn(t, lock, c.NewLock("a"))
	monitor := master.Monitor(t)
	hold := take(t, lock, longLease)
	require.Equal(t, 2, commands(t, "wait", monitor))
	unlock(t, hold)
	require.Empty(t, left(t, master))
}

func TestPlainLocksOfOneSlotOfAClusterAreTwoCommands(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3)
	// In the order of their names the slots alternate.
	lock := plain(t, cluster.Client(t), "1{east}", "2{west}", "3{east}", "4{west}", "5{east}")
	var monitors []*redistest.Monitor
	for _, node := range cluster.Nodes {
		monitors = append(monitors, node.Monitor(t))
	}
	hold := take(t, lock, longLease)
	require.Equal(t, 2, commands(t, "evalsha", monitors...), "one for each slot")
	unlock(t, hold)
	require.Equal(t, 2, commands(t, "evalsha", monitors...))
	require.Empty(t, left(t, cluster.Nodes...))
}

// While a slot moves, Redis answers a command about several of its locks with TRYAGAIN unless one
// node has them all. A single lock is found, and must not wait for the slot's move to end.
func TestPlainLocksOfAMovingSlotAreTakenAndReleasedOneByOne(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 2)
	lock := plain(t, cluster.Client(t), "{job}a", "{job}b", "{job}c")
	slot := cluster.Slot(t, "{job}")
	from, to := cluster.Owner(t, slot), cluster.Nodes[0]
	if from == to {
		to = cluster.Nodes[1]
	}
	outer := take(t, lock, longLease)
	cluster.BeginMove(t, slot, from, to)
	host, port, err := net.SplitHostPort(to.Addr())
	require.NoError(t, err)
	from.Do(t, "MIGRATE", host, port, "", "0", "5000", "KEYS", "{job}b")
	inner := takeWith(outer.Context(), t, lock, longLease)
	require.NoError(t, outer.Extend(t.Context(), longLease))
	unlock(t, inner)
	require.True(t, outer.Valid())
	unlock(t, outer)
	require.Empty(t, left(t, from, to))
	hold, err := lock.TryLock(t.Context(), rlock.NoWait, longLease)
	require.NoError(t, err)
	unlock(t, hold)
	require.Empty(t, left(t, from, to))
}

// Redis Software and Redis Cloud look like a single node, and reject a script for keys of several
// slots. The parts are then taken and released one by one, without another try.
func TestPlainLocksOnAServerThatIsShardedBehindAProxyAreTakenOneByOne(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.WithScripts(luashim.Sharded))
	c := newClientOn(t, s.Client(t), rlock.Options{})
	lock := multilock.NewOn(c, "c", "a", "b")
	for range 2 { // the first teaches the client
		hold, err := lock.TryLock(t.Context(), rlock.NoWait, longLease)
		require.NoError(t, err)
		require.Equal(t, []string{"a", "b", "c"}, left(t, s))
		unlock(t, takeWith(hold.Context(), t, lock, rlock.Watchdog))
		require.NoError(t, hold.Extend(t.Context(), longLease))
		unlock(t, hold)
		require.Empty(t, left(t, s))
	}
	learn(t, lock, c.NewLock("other"))
	slotted := multilock.NewOn(c, "{a}1", "{a}2", "{b}1") // asks for the parts of a slot together
	learn(t, slotted)
	monitor := s.Monitor(t)
	for want, lock := range map[int]*multilock.Lock{3: lock, 2: slotted} {
		hold, err := lock.TryLock(t.Context(), rlock.NoWait, longLease)
		require.NoError(t, err)
		require.Equal(t, want, commands(t, "evalsha", monitor), "a command was sent in vain")
		unlock(t, hold)
		require.Equal(t, want, commands(t, "evalsha", monitor), "a command was sent in vain")
	}
	require.Empty(t, left(t, s))
}

func TestSeveralServersNeedNamesThatAllProcessesKnow(t *testing.T) {
	t.Parallel()
	s, group := redistest.Start(t), redistest.StartSentinel(t)
	single := newClientOn(t, s.Client(t), rlock.Options{})
	unnamed := newClientOn(t, group.Client(t), rlock.Options{})
	named := newClientOn(t, group.Client(t), rlock.Options{Server: "group"})
	_, err := multilock.New(single.NewLock("a"), unnamed.NewLock("b")).Lock(t.Context(), longLease)
	require.ErrorIs(t, err, rlock.ErrInvalid)
	require.ErrorContains(t, err, `"b"`)
	require.ErrorContains(t, err, "rlock.Options.Server")
	require.ErrorContains(t, err, "in every process")
	// A single Redis needs no name, and an address is one.
	unlock(t, take(t, multilock.New(unnamed.NewLock("b"), unnamed.NewFairLock("a")), longLease))
	unlock(t, take(t, multilock.New(named.NewLock("b"), single.NewLock("a")), longLease))
}

// The replica's copies of the locks are released, whatever happens while Sentinel promotes it.
func TestPartsAreReleasedWhileTheirServerFailsOver(t *testing.T) {
	t.Parallel()
	group := redistest.StartSentinel(t)
	c := newClientOn(t, group.Client(t), rlock.Options{CommandTimeout: time.Duration(longLease / 10)})
	hold := take(t, multilock.NewOn(c, "a", "b", "c"), longLease)
	master, replica := group.Nodes[0], group.Nodes[1]
	eventually(t, func() bool { return len(left(t, replica)) == 3 }, "the replica has all")
	// The old master refuses all writes, as one does from its replacement until its clients know.
	host, port, err := net.SplitHostPort(replica.Addr())
	require.NoError(t, err)
	master.Do(t, "CONFIG", "SET", "replica-read-only", "yes")
	master.Do(t, "REPLICAOF", host, port)
	released := make(chan error, 1)
	go func() { released <- hold.Unlock() }()
	eventually(t, func() bool { return master.CommandStats(t)["evalsha"] >= 3 }, "it is retried")
	master.Kill(t)
	require.NoError(t, <-released)
	eventually(t, func() bool { return replica.DoStrings(t, "ROLE")[0] == "master" }, "promoted")
	require.Empty(t, left(t, replica))
}
