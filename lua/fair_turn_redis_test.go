//go:build redis

package lua_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/lua"
)

func TestShardedAnnouncementsReachTheHead(t *testing.T) {
	s, c := queued(t, first, second)
	sharded := lua.Fair{Lock: lock, Channels: lua.Sharded, Counted: true}
	if !knowsShardedChannels(t, s) {
		out, err := sharded.Release(t.Context(), c, 0, other)
		require.NoError(t, err)
		require.True(t, out.Held)
		require.Contains(t, out.Refusal, "Unknown Redis command")
		requireTurn(t, s, first, 10*time.Second) // the server does not count listeners
		return
	}
	sub := subscribe(t, s, "SSUBSCRIBE", fairChannel+first)
	_, err := sharded.Release(t.Context(), c, 0, other)
	require.NoError(t, err)
	sub.requireBytes(t, array("smessage", fairChannel+first, "0"))
	requireTurn(t, s, first, 10*time.Second)
}
