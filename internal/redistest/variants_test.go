//go:build redis

package redistest

import (
	"strconv"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// variants are the ways to connect to a server; each test makes its own.
var variants = map[string]func() []Option{
	"plain":    func() []Option { return nil },
	"password": func() []Option { return []Option{WithPassword("secret")} },
	"user": func() []Option {
		return []Option{WithPassword("secret"), WithUser("app", "another")}
	},
	"TLS": func() []Option { return []Option{WithTLS(), WithPassword("secret")} },
}

func onEachVariant(t *testing.T, test func(t *testing.T, opts []Option)) {
	t.Helper()
	for name, opts := range variants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, opts())
		})
	}
}

func set(t *testing.T, client rueidis.Client, key, value string) {
	t.Helper()
	require.NoError(t,
		client.Do(t.Context(), client.B().Set().Key(key).Value(value).Build()).Error())
}

func TestReplicaCopiesAMasterOfEachVariant(t *testing.T) {
	t.Parallel()
	onEachVariant(t, func(t *testing.T, opts []Option) {
		master := Start(t, with(opts, WithHostNetwork(), WithFastReplicas())...)
		replica := StartReplica(t, master, opts...)
		set(t, master.Client(t), "k", "v")
		require.Eventually(t, func() bool {
			return replica.DoString(t, "GET", "k") == "v"
		}, startTimeout, pollInterval)
	})
}

func TestClusterOfEachVariantMovesSlotsAndFailsOver(t *testing.T) {
	t.Parallel()
	onEachVariant(t, func(t *testing.T, opts []Option) {
		c := StartCluster(t, 3, with(opts, WithReplicas(1))...)
		require.Len(t, c.Nodes, 3)
		require.Len(t, c.Replicas, 3)
		client := c.Client(t)
		for i := range 10 {
			set(t, client, "k"+strconv.Itoa(i), "v")
		}
		slot := c.Slot(t, "k1")
		from := c.Owner(t, slot)
		to := c.Nodes[0]
		if to == from {
			to = c.Nodes[1]
		}
		c.MoveSlot(t, slot, from, to)
		require.Equal(t, "v", to.DoString(t, "GET", "k1"))

		replica := c.Failover(t, to)
		require.Same(t, replica, c.Owner(t, slot))
		require.Equal(t, "v", replica.DoString(t, "GET", "k1"))
		require.Contains(t, c.Masters(t), replica)
		require.NotContains(t, c.Masters(t), to)
		set(t, client, "k1", "w")
		require.Eventually(t, func() bool {
			return len(c.ReplicasOf(replica)) == 1
		}, startTimeout, pollInterval)
		require.Equal(t, []*Server{to}, c.ReplicasOf(replica))
	})
}
