//go:build redis

package lua_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/lua"
)

func TestSlotIsTheServers(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 1)
	for _, key := range keys {
		require.Equal(t, c.Slot(t, key), int(lua.Slot(key)), "%q", key)
	}
}
