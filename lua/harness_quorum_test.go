package lua_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/lua"
)

// undelayed counts a node at once.
var undelayed = lua.Delay{}

// vote is what the node of a client says to an owner who wants the lock.
func vote(t *testing.T, c rueidis.CoreClient, owner string, d lua.Delay) lua.Vote {
	t.Helper()
	v, err := lua.AcquireVote(t.Context(), c, lock, owner, lease, d)
	require.NoError(t, err)
	return v
}

// uptime is what a server says of how long it runs, in whole seconds.
func uptime(t *testing.T, s *redistest.Server) time.Duration {
	t.Helper()
	found := uptimeLine.FindStringSubmatch(s.DoString(t, "INFO", "server"))
	require.NotNil(t, found)
	seconds, err := strconv.Atoi(found[1])
	require.NoError(t, err)
	return time.Duration(seconds) * time.Second
}

// requireDelayed asserts that a vote was delayed for the restart, until the uptime has the delay and a second more.
func requireDelayed(t *testing.T, want time.Duration, before, after time.Duration, v lua.Vote) {
	t.Helper()
	require.False(t, v.Granted)
	require.Nil(t, v.Holder)
	require.False(t, v.Emptied)
	require.LessOrEqual(t, v.Delayed, want+time.Second-before)
	require.GreaterOrEqual(t, v.Delayed, want+time.Second-after)
}
