package doctor

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
)

func TestMastersOfAClusterShareALineIfTheyAgree(t *testing.T) {
	t.Parallel()
	nodes := redistest.StartCluster(t, 2)
	client := nodes.Client(t)
	require.Len(t, examined(t, client, "eviction", Options{}), 1)
	nodes.Nodes[1].Do(t, "CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
	found := examined(t, client, "eviction", Options{})
	require.Len(t, found, 2)
	for _, f := range found {
		want := OK
		if f.Node == nodes.Nodes[1].Addr() {
			want = Warning
		}
		require.Equal(t, want, f.State)
	}
}

func TestExaminationGoesOnWithoutADeadNode(t *testing.T) {
	t.Parallel()
	nodes := redistest.StartCluster(t, 2)
	nodes.Nodes[0].Kill(t)
	var of []string
	worst, err := Examine(t.Context(), nodes.Client(t), Options{}, func(f Finding) {
		if f.Node == nodes.Nodes[0].Addr() {
			of = append(of, f.Check)
		}
	})
	require.NoError(t, err)
	require.Equal(t, Error, worst)
	require.Equal(t, []string{"node"}, of)
}

func TestLockNamesOfANodeAreServedByIt(t *testing.T) {
	t.Parallel()
	nodes := redistest.StartCluster(t, 3)
	all, err := masters(t.Context(), nodes.Client(t), Options{Prefix: "order:"})
	require.NoError(t, err)
	require.Len(t, all, 3)
	for _, n := range all {
		name := n.lockName()
		require.True(t, strings.HasPrefix(name, "order:"))
		slot := nodes.Slot(t, name)
		require.Equal(t, n.address, nodes.Owner(t, slot).Addr())
	}
}

func TestPrefixWithAHashTagIsTriedOnOneNode(t *testing.T) {
	t.Parallel()
	nodes := redistest.StartCluster(t, 2)
	found := examined(t, nodes.Client(t), "locks", Options{Prefix: "{order}:"})
	require.Len(t, found, len(kinds)+1)
	for _, f := range found {
		require.Equal(t, OK, f.State, "%+v", f)
	}
}

// This test runs alone: doctor must look at 350,000 keys within the time of its checks.
func TestFullExaminationLooksAtAllKeys(t *testing.T) {
	server := redistest.Start(t)
	server.Do(t, "EVAL", "for i = 1, 250000 do redis.call('SET', 'key' .. i, 1) end", "0")
	client := server.Client(t)
	scans := func(o Options) int {
		server.ResetStats(t)
		require.Equal(t, OK, examined(t, client, "leases", o)[0].State)
		return server.CommandStats(t)["scan"]
	}
	some, all := scans(Options{}), scans(Options{Full: true})
	require.Positive(t, some)
	require.Greater(t, all, 2*some)
	require.Less(t, all, 4*some)
}
