//go:build redis

package rlock_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// requireRefusedAfter requires that a waiter does not get the lock. A machine that is too busy to
// reply in that time gets another chance.
func requireRefusedAfter(t testing.TB, wait time.Duration, l *rlock.Lock) {
	t.Helper()
	var err error
	eventually(t, func() bool {
		_, err = l.TryLock(t.Context(), wait, rlock.Lease(time.Minute))
		return !errors.Is(err, rlock.ErrOutcomeUnknown)
	}, "no reply")
	require.ErrorIs(t, err, rlock.ErrNotAcquired, l.Name())
}

// requireKept requires that holds stay valid for a while.
func requireKept(t testing.TB, holds []*rlock.Hold, length time.Duration, otherwise string) {
	t.Helper()
	over := time.After(length)
	look := time.NewTicker(length / 100)
	defer look.Stop()
	for {
		for _, hold := range holds {
			require.True(t, hold.Valid(), "%s: %s: %v; its deadline is in %v", otherwise,
				hold.Name(), hold.Err(), time.Until(hold.Deadline()))
		}
		select {
		case <-over:
			return
		case <-look.C:
		}
	}
}

// endedAt returns when the hold's context ended.
func endedAt(hold *rlock.Hold) <-chan time.Time {
	ctx, at := hold.Context(), make(chan time.Time, 1)
	go func() {
		<-ctx.Done()
		at <- time.Now()
	}()
	return at
}

// waitForRenewal waits until each of the holds has been renewed.
func waitForRenewal(t *testing.T, holds []*rlock.Hold) {
	t.Helper()
	var before []time.Time
	for _, hold := range holds {
		before = append(before, hold.Deadline())
	}
	for i, hold := range holds {
		eventually(t, func() bool { return hold.Deadline().After(before[i]) }, "never renewed")
	}
}

// waitForQuiet waits until no script was sent for a while: all that subscribed have asked again.
func waitForQuiet(t testing.TB, s *redistest.Server) {
	t.Helper()
	monitor := s.Monitor(t)
	for quiet := 0; quiet < 3; quiet++ {
		<-time.After(20 * time.Millisecond)
		if len(monitor.Commands(t)) > 0 {
			quiet = -1
		}
	}
}

// asUser makes a client connect as the user that restrict makes.
func asUser(o *rueidis.ClientOption) { o.Username, o.Password = "app", "secret" }

// restrict makes a user that may do everything but what the ACL rules forbid.
func restrict(t testing.TB, s *redistest.Server, rules ...string) {
	t.Helper()
	user := []string{
		"ACL", "SETUSER", "app", "reset", "on", ">secret", "allkeys", "allchannels", "+@all"}
	s.Do(t, append(user, rules...)...)
}

// requireRefusal requires that err is the server's refusal with the given code, and has advice.
func requireRefusal(t testing.TB, err error, code string) {
	t.Helper()
	var refusal *rlock.ServerError
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, code, refusal.Code, "%v", err)
	require.NotEmpty(t, refusal.Advice)
	require.ErrorContains(t, err, refusal.Advice)
	require.NotErrorIs(t, err, rlock.ErrNotAcquired)
	require.NotErrorIs(t, err, rlock.ErrOutcomeUnknown)
}

// requireRefusedAtOnce requires that a wait ends with a refusal long before its time.
func requireRefusedAtOnce(t testing.TB, l *rlock.Lock, code string) {
	t.Helper()
	start := time.Now()
	_, err := l.TryLock(t.Context(), 2*longWait, rlock.Lease(time.Second))
	requireRefusal(t, err, code)
	require.Less(t, time.Since(start), longWait)
}

// startReplicated starts a master and replicas of it that are in sync.
func startReplicated(
	t testing.TB, replicas int,
) (master *redistest.Server, copies []*redistest.Server) {
	t.Helper()
	master = redistest.Start(t, redistest.WithHostNetwork(), redistest.WithFastReplicas())
	for range replicas {
		copies = append(copies, redistest.StartReplica(t, master))
	}
	return master, copies
}

// waitForBlocked waits until n clients of the server wait in a command, as WAIT makes them.
func waitForBlocked(t testing.TB, s *redistest.Server, n string) {
	t.Helper()
	eventually(t, func() bool {
		reply, err := s.Call("INFO", "clients")
		info, _ := reply.(string)
		return err == nil && strings.Contains(info, "blocked_clients:"+n+"\r\n")
	}, n+" clients in WAIT")
}

// shortfall requires an error that says how many replicas had the acquisition.
func shortfall(t testing.TB, err error, want, got int, waited time.Duration) {
	t.Helper()
	require.ErrorIs(t, err, rlock.ErrNotReplicated)
	require.NotErrorIs(t, err, rlock.ErrNotAcquired)
	require.NotErrorIs(t, err, rlock.ErrOutcomeUnknown)
	short := new(rlock.ReplicationError)
	require.ErrorAs(t, err, &short)
	require.Equal(t, rlock.ReplicationError{Lock: short.Lock, Want: want, Got: got, Waited: waited},
		*short)
	require.ErrorContains(t, err, "SyncTimeout")
}

// enough is more time for acknowledgements than healthy replicas need.
const enough = longWait

// nodeOf returns the node of a cluster that serves a lock.
func nodeOf(t testing.TB, c *redistest.Cluster, lock string) *redistest.Server {
	t.Helper()
	return c.Owner(t, c.Slot(t, lock))
}

// oneLockPerNode returns lock names, each served by another node.
func oneLockPerNode(t testing.TB, c *redistest.Cluster) map[*redistest.Server]string {
	t.Helper()
	found := make(map[*redistest.Server]string)
	for i := 0; len(found) < len(c.Nodes); i++ {
		name := fmt.Sprint("lock-", i)
		found[nodeOf(t, c, name)] = name
	}
	return found
}

// knowsSharded reports whether the cluster has sharded channels, as Redis 7 and Valkey do.
func knowsSharded(t testing.TB, cluster *redistest.Cluster) bool {
	t.Helper()
	_, err := cluster.Nodes[0].Call("PUBSUB", "SHARDNUMSUB")
	if err != nil {
		require.Contains(t, cluster.Nodes[0].DoString(t, "INFO", "server"), "redis_version:6.")
	}
	return err == nil
}
