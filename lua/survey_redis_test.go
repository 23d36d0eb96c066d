//go:build redis

package lua_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/lua"
)

func TestSurveyChangesNothing(t *testing.T) {
	s, c := start(t)
	s.Do(t, "HSET", "lock", thread, "1")
	s.Do(t, "RPUSH", "redisson_lock_queue:{lock}", another)
	dirty := func() string { return s.DoString(t, "INFO", "persistence") }
	changes := `rdb_changes_since_last_save:2`
	require.Contains(t, dirty(), changes)
	survey(t, c, "lock")
	require.Contains(t, dirty(), changes)
}

func TestSurveyOnAClusterLeavesOutKeysOfOtherSlots(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3)
	c := cluster.Client(t)
	for _, name := range []string{"plain", "{tag}x", "a{b", "x{}y"} {
		node := cluster.Owner(t, cluster.Slot(t, name))
		node.Do(t, "HSET", name, thread, "1")
		got := lua.NewSurveyor(c, true).Survey(t.Context(), name)[0]
		require.NoError(t, got.Err, name)
		require.NotEmpty(t, got.Holds, name)
	}
}
