//go:build redis

package redistest

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestClusterReplicaTakesOverFromADeadMasterWhichFollowsWhenItIsBack(t *testing.T) {
	t.Parallel()
	c := StartCluster(t, 3, WithReplicas(1))
	slot := c.Slot(t, "k")
	master := c.Owner(t, slot)
	replica := c.ReplicasOf(master)[0]
	set(t, c.Client(t), "k", "v")
	WaitForReplica(t, master, replica)

	master.Kill(t)
	start := time.Now()
	require.Same(t, replica, c.Failover(t, master))
	require.Less(t, time.Since(start), 12*time.Second,
		"the cluster did it, after its node timeout of 15 s")
	require.Equal(t, "v", replica.DoString(t, "GET", "k"))
	require.Len(t, c.Masters(t), 3)

	master.Restart(t)
	require.Eventually(t, func() bool {
		return master.copies() == replica.port
	}, startTimeout, pollInterval)
}

func TestFailoverWaitsForAClusterMasterThatIsSlow(t *testing.T) {
	t.Parallel()
	c := StartCluster(t, 3, WithReplicas(1))
	master := c.Nodes[0]
	replica := c.ReplicasOf(master)[0]
	WaitForReplica(t, master, replica)
	master.Pause(t)
	master.silent.Store(false) // as if it had not been paused
	var goesOn atomic.Bool
	wake := time.AfterFunc(5*replyTimeout, func() { // a takeover needs three
		goesOn.Store(true)
		_ = master.backend.Resume() // clean-up tries again
	})
	t.Cleanup(func() { wake.Stop() })
	require.Same(t, replica, c.Failover(t, master))
	require.True(t, goesOn.Load(), "its replica took over without its consent")
}

func TestClusterMasterThatIsPausedIsReplaced(t *testing.T) {
	t.Parallel()
	c := StartCluster(t, 3, WithReplicas(1))
	master := c.Nodes[0]
	master.Pause(t)
	replica := c.Failover(t, master)
	require.Contains(t, c.Masters(t), replica)
}

func TestThreeSentinelsReplaceAMasterThatDies(t *testing.T) {
	t.Parallel()
	s := StartSentinel(t, WithReplicas(2), WithWatchers(3))
	require.Len(t, s.Nodes, 3)
	require.Len(t, s.Watchers, 3)
	old := s.Master(t)
	s.Watchers[0].Kill(t) // two are a majority
	old.Kill(t)
	master := s.WaitForFailover(t, old)
	require.Same(t, master, s.Master(t))
	set(t, s.Client(t), "k", "v")
	require.Equal(t, "v", master.DoString(t, "GET", "k"))

	old.Restart(t)
	require.Eventually(t, func() bool {
		return old.copies() == master.port
	}, failoverTimeout, pollInterval)
}

func TestSentinelsFailOverOnDemandAgainAndAgain(t *testing.T) {
	t.Parallel()
	s := StartSentinel(t, WithReplicas(2), WithWatchers(3))
	client := s.Client(t)
	for range 2 {
		before := s.Master(t)
		master := s.Failover(t)
		require.NotSame(t, before, master)
		require.Eventually(t, func() bool {
			return client.Do(t.Context(),
				client.B().Set().Key("k").Value("v").Build()).Error() == nil
		}, failoverTimeout, pollInterval)
		require.Equal(t, "v", master.DoString(t, "GET", "k"))
		require.Same(t, master, s.replace(t, before), "they have failed over already")
	}
}

func TestFailoverIsOrderedAgainAfterTheReplicaWasTooSlow(t *testing.T) {
	t.Parallel()
	s := StartSentinel(t)
	replica := s.Nodes[1]
	inProgress := func() bool {
		masters, err := s.Watcher.ask("SENTINEL", "MASTER", sentinelName)
		return err == nil && strings.Contains(fmt.Sprint(masters), "failover_in_progress")
	}
	replica.Pause(t)
	var watching sync.WaitGroup
	t.Cleanup(watching.Wait)
	watching.Go(func() {
		// On a busy machine the Sentinel may find the replica too slow before the failover is ordered. It
		// rejects the order then, and it has to be repeated just the same.
		began := time.Now()
		for !inProgress() && time.Since(began) < failoverTimeout/6 {
			time.Sleep(pollInterval)
		}
		assert.Eventually(t, func() bool { return !inProgress() }, failoverTimeout, pollInterval)
		if err := replica.backend.Resume(); err != nil { // Resume would end this goroutine
			t.Error(err)
		}
		replica.silent.Store(false)
	})
	require.Same(t, replica, s.Failover(t))
}

func TestReplicaIsPromotedJustBeforeTheSentinelAsksItAgain(t *testing.T) {
	t.Parallel()
	s := StartSentinel(t)
	// More Sentinels than there are: this one fails over only when told to.
	s.Watcher.Do(t, "SENTINEL", "SET", sentinelName, "quorum", "2")
	s.Nodes[0].Kill(t)
	require.Eventually(t, func() bool {
		masters, err := s.Watcher.ask("SENTINEL", "MASTER", sentinelName)
		return err == nil && strings.Contains(fmt.Sprint(masters), "s_down")
	}, failoverTimeout, pollInterval)
	// due reports whether the last INFO is more than a second old, so that the next one is due, but
	// not so old that the replica may have been silent, as on a busy machine.
	due := func() bool {
		replicas, err := s.Watcher.sentinelList("REPLICAS")
		if err != nil || len(replicas) != 1 {
			return false
		}
		age, err := strconv.Atoi(replicas[0]["info-refresh"]) // milliseconds
		return err == nil && age > 1005 && age < 2000
	}
	refused := errors.New("not ordered")
	for try := 0; refused != nil && try < 3; try++ {
		require.Eventually(t, due, failoverTimeout, time.Millisecond, "no INFO is due")
		if _, refused = s.Watcher.Call("SENTINEL", "FAILOVER", sentinelName); due() {
			break // a refusal had no other reason
		}
	}
	require.NoError(t, refused)
	require.Same(t, s.Nodes[1], s.replace(t, s.Nodes[0])) // orders it again if it is abandoned
}
