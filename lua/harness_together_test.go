package lua_test

import (
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/lua"
)

// leaving is what the owner leaves behind of a lock, announced on the lock's own channel.
func leaving(lock, owner string, count int) lua.Leaving {
	return lua.Leaving{Lock: lock, Owner: owner, Count: count,
		Announcement: lua.Announcement{Channel: lua.Channel(lock), Message: lua.Unlocked}}
}

func releaseTogether(t *testing.T, c rueidis.CoreClient, leavings ...lua.Leaving) []lua.PartReleased {
	t.Helper()
	parts, err := lua.ReleaseTogether(t.Context(), c, leavings)
	require.NoError(t, err)
	require.Len(t, parts, len(leavings))
	return parts
}

var gone = lua.PartReleased{Released: lua.Released{Held: true}}

// The locks that are taken together.
const (
	north  = "account:1"
	middle = "account:2"
	south  = "account:3"
)

// requireTogether asserts that all was taken.
func requireTogether(t *testing.T, c rueidis.CoreClient, lease time.Duration, takings ...lua.Taking) {
	t.Helper()
	index, holder, err := lua.AcquireTogether(t.Context(), c, lease, takings)
	require.NoError(t, err)
	require.Equal(t, -1, index)
	require.Nil(t, holder)
}

// rulesPerKey tells whether the server knows such rules, as Redis 7 and Valkey do.
func rulesPerKey(t *testing.T, s *redistest.Server) bool {
	t.Helper()
	_, err := s.Call("ACL", "SETUSER", "probe", "%R~key", notOnSouth("get"))
	if err == nil {
		return true
	}
	require.ErrorContains(t, err, "Syntax error")
	require.Contains(t, s.DoString(t, "INFO", "server"), "redis_version:6.")
	return false
}

// startNotOnSouth is startAs for a user who may not execute the command on south, and on an old server nothing at all there.
func startNotOnSouth(t *testing.T, command string) (*redistest.Server, rueidis.Client) {
	t.Helper()
	s, c := startAs(t, "resetkeys", "~"+north, "~"+middle)
	if rulesPerKey(t, s) {
		user(notOnSouth(command))(t, s)
	}
	return s, c
}

// command returns what executes a command on a server.
func command(words ...string) func(*testing.T, *redistest.Server) {
	return func(t *testing.T, s *redistest.Server) {
		t.Helper()
		s.Do(t, words...)
	}
}

// user returns what changes the user of startAs.
func user(rules ...string) func(*testing.T, *redistest.Server) {
	return command(append([]string{"ACL", "SETUSER", "app"}, rules...)...)
}

// In each of these north is free, middle has a level of the owner's, and south is free.
func togetherInOrder(order ...string) []lua.Taking {
	all := map[string]lua.Taking{
		north:  {Lock: north, Owner: me, Count: 1},
		middle: {Lock: middle, Owner: me, Count: 2, Nested: true},
		south:  {Lock: south, Owner: me, Count: 1},
	}
	takings := make([]lua.Taking, len(order))
	for i, lock := range order {
		takings[i] = all[lock]
	}
	return takings
}
