//go:build redis

package redistest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSentinelPromotesTheReplicaOfAMasterThatDies(t *testing.T) {
	t.Parallel()
	s := StartSentinel(t)
	master := s.Master(t)
	require.Same(t, s.Nodes[0], master)
	client := s.Client(t)
	require.NoError(t, client.Do(t.Context(), client.B().Set().Key("k").Value("v").Build()).Error())
	require.Equal(t, "v", master.DoString(t, "GET", "k"))

	master.Kill(t)
	require.Eventually(t, func() bool {
		return s.masterSeenBy(s.Watcher) == s.Nodes[1]
	}, failoverTimeout, 10*time.Millisecond)
	require.Eventually(t, func() bool {
		return client.Do(t.Context(), client.B().Set().Key("k").Value("w").Build()).Error() == nil
	}, failoverTimeout, 10*time.Millisecond)
	require.Equal(t, "w", s.Nodes[1].DoString(t, "GET", "k"))
}

func TestSentinelsAreHurried(t *testing.T) {
	t.Parallel()
	settings := StartSentinel(t).Watcher.DoMap(t, "SENTINEL", "DEBUG")
	for name, millis := range map[string]string{"INFO-PERIOD": "200", "PUBLISH-PERIOD": "200",
		"PING-PERIOD": "500", "TILT-PERIOD": "2000"} {
		require.Equal(t, millis, settings[name], name)
	}
}
