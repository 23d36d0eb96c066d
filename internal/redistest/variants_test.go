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

func TestSentinelFailsOverServersOfEachVariant(t *testing.T) {
	t.Parallel()
	onEachVariant(t, func(t *testing.T, opts []Option) {
		s := StartSentinel(t, opts...)
		client := s.Client(t)
		set(t, client, "k", "v")
		old := s.Master(t)
		master := s.Failover(t)
		require.NotSame(t, old, master)
		require.Same(t, master, s.Master(t))
		require.Equal(t, "v", master.DoString(t, "GET", "k"))
		WaitForReplica(t, master, old) // which must know how to reach the new one, too
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

func TestUserMayDoWhatItsRulesSay(t *testing.T) {
	t.Parallel()
	s := Start(t, WithUser("app", "secret", "~mine:*", "&*", "+@all", "-flushall"))
	client := s.Client(t)
	set(t, client, "mine:k", "v")
	require.ErrorContains(t,
		client.Do(t.Context(), client.B().Set().Key("k").Value("v").Build()).Error(), "NOPERM")
	require.ErrorContains(t, client.Do(t.Context(), client.B().Flushall().Build()).Error(),
		"NOPERM")
	require.Equal(t, "default", s.DoString(t, "ACL", "WHOAMI"))
	s.Do(t, "FLUSHALL")
	_, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{s.Addr()},
		Username: "app", Password: "wrong"})
	require.ErrorContains(t, err, "WRONGPASS")
}

func TestServersOfOneTLSOptionTrustEachOther(t *testing.T) {
	t.Parallel()
	servers := StartAll(t, 2, WithTLS())
	option := servers[0].ClientOption()
	option.InitAddress = []string{servers[1].Addr()}
	client, err := rueidis.NewClient(option)
	require.NoError(t, err)
	client.Close()
}

func TestCommandsThatWereRenamedAwayAreLeftToTheTest(t *testing.T) {
	t.Parallel()
	s := Start(t, WithoutCommands("TIME", "INFO", "PING"), WithUser("app", "secret"))
	require.NotEmpty(t, s.Do(t, "time"))
	c := s.Client(t)
	for _, command := range []string{"TIME", "INFO", "PING"} {
		err := c.Do(t.Context(), c.B().Arbitrary(command).Build()).Error()
		require.ErrorContains(t, err, "unknown command '"+command+"'")
	}
	script := c.B().Eval().Script("return redis.call('TIME')").Numkeys(0).Build()
	require.ErrorContains(t, c.Do(t.Context(), script).Error(), "Unknown Redis command called")
	require.Empty(t, s.Keys(t))
}
