//go:build redis

package lua_test

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/lua"
)

// acknowledged takes the lock on a connection of its own, and returns how many replicas have it.
func acknowledged(
	t *testing.T,
	c rueidis.Client,
	replicas int,
	timeout time.Duration,
) (n int, took time.Duration) {
	t.Helper()
	require.NoError(t, c.Dedicated(func(connection rueidis.DedicatedClient) error {
		if _, err := lockPlain(t.Context(), connection, lock, me, lease); err != nil {
			return err
		}
		start := time.Now()
		var err error
		n, err = lua.Acknowledged(t.Context(), connection, replicas, timeout)
		took = time.Since(start)
		return err
	}))
	return n, took
}

func TestReplicasThatHaveAWriteAcknowledgeIt(t *testing.T) {
	t.Parallel()
	master, c := start(t, redistest.WithHostNetwork(), redistest.WithFastReplicas())
	first, second := redistest.StartReplica(t, master), redistest.StartReplica(t, master)
	n, took := acknowledged(t, c, 2, eventually)
	require.Equal(t, 2, n)
	require.Less(t, took, eventually/2, "it waited longer than for the acknowledgements")
	for _, replica := range []*redistest.Server{first, second} {
		require.Equal(t, map[string]string{me: "1"}, replica.DoMap(t, "HGETALL", lock))
	}
}

func TestReplicaThatLagsDoesNotAcknowledge(t *testing.T) {
	t.Parallel()
	const timeout = time.Second
	master, c := start(t, redistest.WithHostNetwork(), redistest.WithFastReplicas())
	redistest.StartReplica(t, master)
	redistest.StartReplica(t, master).Pause(t)
	n, took := acknowledged(t, c, 2, timeout)
	require.Equal(t, 1, n)
	require.GreaterOrEqual(t, took, timeout)
}

func TestNobodyAcknowledgesWithoutReplicas(t *testing.T) {
	t.Parallel()
	const timeout = 50 * time.Millisecond
	_, c := start(t)
	n, took := acknowledged(t, c, 1, timeout)
	require.Zero(t, n)
	require.GreaterOrEqual(t, took, timeout)
}

func TestRefusedWaitForAcknowledgementsIsClassified(t *testing.T) {
	t.Parallel()
	_, c := startAs(t, "-wait")
	_, err := lua.Acknowledged(t.Context(), c, 1, time.Second)
	e := requireError(t, err, lua.ClassPermanent, "NOPERM")
	require.Contains(t, e.Advice, "ACL")
}

// While a client waits, the master becomes a replica, as a Sentinel may have it.
func TestMasterThatBecomesAReplicaEndsTheWaitForAcknowledgements(t *testing.T) {
	t.Parallel()
	master, c := start(t, redistest.WithHostNetwork(), redistest.WithFastReplicas())
	redistest.StartReplica(t, master).Pause(t)
	ended := make(chan error, 1)
	go func() {
		ended <- c.Dedicated(func(connection rueidis.DedicatedClient) error {
			if _, err := lockPlain(t.Context(), connection, lock, me, lease); err != nil {
				return err
			}
			_, err := lua.Acknowledged(t.Context(), connection, 1, time.Minute)
			return err
		})
	}()
	require.Eventually(t, func() bool {
		reply, err := master.Call("INFO", "clients")
		info, _ := reply.(string)
		return err == nil && blocked(info)
	}, eventually, poll, "no client waits")
	master.Do(t, "REPLICAOF", "127.0.0.1", "1")
	select {
	case err := <-ended:
		requireError(t, err, lua.ClassTemporary, "UNBLOCKED")
	case <-time.After(eventually):
		require.FailNow(t, "the wait does not end")
	}
}

// blocked reports whether INFO clients shows a client blocked in a command.
func blocked(info string) bool {
	return strings.Contains(info, "blocked_clients:") &&
		!strings.Contains(info, "blocked_clients:0")
}

func TestReplicaWithoutTheDataOfItsMasterLeavesItAlone(t *testing.T) {
	t.Parallel()
	master, c := start(t, redistest.WithHostNetwork(), redistest.WithFastReplicas())
	alone := func(c rueidis.Client) (is bool) {
		require.NoError(t, c.Dedicated(func(connection rueidis.DedicatedClient) (err error) {
			is, err = lua.Alone(t.Context(), connection)
			return err
		}))
		return is
	}
	require.True(t, alone(c))
	master.Do(t, "CONFIG", "SET", "repl-diskless-sync", "yes") // Redis 6.2 sets one at a time
	master.Do(t, "CONFIG", "SET", "repl-diskless-sync-delay", "3600")
	replica := redistest.Start(t, redistest.WithHostNetwork(), redistest.WithFastReplicas())
	host, port, err := net.SplitHostPort(master.Addr())
	require.NoError(t, err)
	replica.Do(t, "REPLICAOF", host, port)
	require.Eventually(t, func() bool {
		return strings.Contains(master.DoString(t, "INFO", "replication"), "state=wait_bgsave")
	}, eventually, poll, "it does not ask for the data")
	require.True(t, alone(c), "it copies the data")
	require.False(t, alone(replica.Client(t)), "a replica is no master")

	master.Do(t, "CONFIG", "SET", "repl-diskless-sync-delay", "0")
	redistest.WaitForReplica(t, master, replica)
	require.False(t, alone(c))
}
