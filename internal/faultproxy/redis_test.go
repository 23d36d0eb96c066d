//go:build redis

package faultproxy

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
)

// said returns the reply of a server that refuses a command.
func said(t *testing.T, s *redistest.Server, command ...string) string {
	t.Helper()
	_, err := s.Call(command...)
	require.Error(t, err)
	return strings.ReplaceAll(err.Error(), "Valkey", "Redis")
}

func TestRefusalsAreWordedAsByServers(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do(t, "CONFIG", "SET", "lua-time-limit", "1")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = s.Call("EVAL", "while true do end", "0") // runs until it is killed
	}()
	require.Eventually(t, func() bool {
		_, err := s.Call("PING")
		return err != nil
	}, soon, time.Millisecond, "the script runs")
	require.Equal(t, Busy, said(t, s, "PING"))
	s.Do(t, "SCRIPT", "KILL")
	<-ended

	s.Do(t, "CONFIG", "SET", "maxmemory", "1")
	require.Equal(t, OutOfMemory, said(t, s, "SET", "k", "v"))
	s.Do(t, "ACL", "SETUSER", "default", "-evalsha")
	want, got := NoPerm("default", "evalsha"), said(t, s, "EVALSHA", strings.Repeat("0", 40), "0")
	if strings.HasPrefix(got, "NOPERM this user ") { // older servers do not name the user
		want = strings.Replace(want, "User default", "this user", 1)
	}
	require.Equal(t, want, got)
	s.Do(t, "CONFIG", "SET", "maxmemory", "0")
	s.Do(t, "REPLICAOF", "127.0.0.1", "1") // no server listens there
	require.Equal(t, ReadOnly, said(t, s, "SET", "k", "v"))
	s.Do(t, "CONFIG", "SET", "replica-serve-stale-data", "no")
	require.Equal(t, MasterDown, said(t, s, "GET", "k"))

	s = redistest.Start(t, redistest.AsClusterNode())
	slot := strconv.FormatInt(s.DoInt(t, "CLUSTER", "KEYSLOT", "k"), 10)
	s.Do(t, "CLUSTER", "ADDSLOTS", slot) // all other slots are unassigned
	require.Equal(t, ClusterDown, said(t, s, "GET", "k"))
}

func TestNetworkIsInFrontOfEveryNodeOfACluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3)
	n := NewNetwork(t)
	c := cluster.Client(t, n.Use, func(o *rueidis.ClientOption) {
		o.InitAddress = o.InitAddress[:1] // it learns of the others
		o.PipelineMultiplex = -1
	})
	for i := range 100 {
		require.NoError(t, c.Do(t.Context(),
			c.B().Set().Key(strconv.Itoa(i)).Value("v").Build()).Error())
	}
	require.Len(t, n.Routes(), 3)
	for _, node := range cluster.Nodes {
		require.Equal(t, n.To(node.Addr()).Addr(), n.Routes()[node.Addr()])
	}

	// A redirection is followed through the network as well.
	slot := cluster.Slot(t, "key")
	from := cluster.Owner(t, slot)
	to := cluster.Nodes[0]
	if to == from {
		to = cluster.Nodes[1]
	}
	fault := n.To(from.Addr()).Reply("GET key", 1, Moved(slot, to.Addr()))
	back := n.To(to.Addr()).Reply("GET key", 1, "HERE I am")
	require.EqualError(t, c.Do(t.Context(), c.B().Get().Key("key").Build()).Error(), "HERE I am")
	require.Equal(t, []int{1, 1}, []int{fault.Done(), back.Done()})

	var total int
	n.All(func(p *Proxy) { total += p.Reset() })
	require.GreaterOrEqual(t, total, 3)
}
