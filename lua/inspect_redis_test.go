//go:build redis

package lua_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/lua"
)

func TestReadWriteLockShowsItsModeApartFromItsOwners(t *testing.T) {
	s, c := start(t)
	s.Do(t, "HSET", lock, "mode", "read", me, "2", other, "1")
	state, err := lua.Inspect(t.Context(), c, lock)
	require.NoError(t, err)
	require.Equal(
		t,
		lua.State{
			Mode:  "read",
			Holds: []lua.Hold{{Owner: me, Count: 2}, {Owner: other, Count: 1}},
			TTL:   lua.NoExpiry,
		},
		state,
	)
}
