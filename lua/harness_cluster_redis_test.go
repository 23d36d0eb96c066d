//go:build redis

package lua_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
)

// knowsShardedChannels reports whether the server does, as Redis 7 and Valkey do.
func knowsShardedChannels(tb testing.TB, s *redistest.Server) bool {
	tb.Helper()
	_, err := s.Call("PUBSUB", "SHARDNUMSUB")
	if err == nil {
		return true
	}
	require.ErrorContains(tb, err, "Unknown subcommand")
	require.Contains(tb, s.DoString(tb, "INFO", "server"), "redis_version:6.")
	return false
}
