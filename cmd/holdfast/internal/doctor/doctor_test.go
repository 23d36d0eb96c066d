package doctor

import (
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

func TestPrefixWithAHashTagIsTriedOnOneNode(t *testing.T) {
	t.Parallel()
	nodes := redistest.StartCluster(t, 2)
	found := examined(t, nodes.Client(t), "locks", Options{Prefix: "{order}:"})
	require.Len(t, found, len(kinds)+1)
	for _, f := range found {
		require.Equal(t, OK, f.State, "%+v", f)
	}
}
