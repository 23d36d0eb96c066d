package integration_test

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/integration"
	"holdfast/internal/redistest"
)

func portOf(t *testing.T, server *redistest.Server) string {
	t.Helper()
	_, port, err := net.SplitHostPort(server.Addr())
	require.NoError(t, err)
	return port
}

func TestHealRestoresEveryServerInEveryTopology(t *testing.T) {
	t.Parallel()
	for _, topology := range integration.Topologies() {
		t.Run(topology.String(), func(t *testing.T) {
			t.Parallel()
			servers := integration.Start(t, topology, integration.AppendOnly)
			servers.Heal(t) // does nothing
			all := servers.All()
			if last := len(all) - 1; last > 0 {
				all[last].Pause(t)
			}
			all[0].Kill(t)
			if sentinels := servers.Sentinels(); sentinels != nil {
				require.Len(t, sentinels, 3)
				sentinels[0].Kill(t)
				sentinels[1].Pause(t)
			}
			servers.Heal(t)
			require.Equal(t, all, servers.All())
			for _, server := range append(all, servers.Sentinels()...) {
				require.True(t, server.Running())
				require.Equal(t, "PONG", server.DoString(t, "PING"))
			}
			for i, client := range servers.Clients(t) {
				name := string(rune('a' + i))
				require.NoError(t, client.Do(t.Context(),
					client.B().Set().Key(name).Value("v").Build()).Error())
			}
			require.Len(t, servers.Replicas(t), len(all)-len(servers.Masters(t)))
		})
	}
}
