//go:build interop

package redisson_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/redissonyaml"
)

// Config.toYAML writes all keys that this Redisson has, with their values: each must be known.
func TestEveryKeyThatRedissonWritesIsKnown(t *testing.T) {
	t.Parallel()
	java := startPeer(t)
	for topology, want := range map[string]int{"single": 1, "sentinel": 2, "cluster": 2} {
		r, err := java.do(order{
			"thread": "yaml", "op": "yaml", "topology": topology, "watchdog": 5000,
			"addresses": []string{"127.0.0.1:6379", "127.0.0.1:6380"}[:want],
		})
		require.NoError(t, err)
		require.True(t, r.OK, "%s: %s", r.Class, r.Message)
		var file string
		require.NoError(t, json.Unmarshal(r.Value, &file))
		config, err := redissonyaml.Load(strings.NewReader(file), redissonyaml.Options{})
		require.NoError(t, err, file)
		require.Len(t, config.Redis.InitAddress, want)
		require.Equal(t, 5*time.Second, config.Locks.WatchdogLease)
	}
}
