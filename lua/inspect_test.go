package lua_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/lua"
)

func TestInspectOfAFreeLockShowsNoHolder(t *testing.T) {
	_, c := start(t)
	state, err := lua.Inspect(t.Context(), c, lock)
	require.NoError(t, err)
	require.Equal(t, lua.State{}, state)
}

func TestHeldLockShowsOwnerCountAndLease(t *testing.T) {
	s, c := start(t)
	hold(t, s, lock, other, "3", lease)
	state, err := lua.Inspect(t.Context(), c, lock)
	require.NoError(t, err)
	require.Equal(t, []lua.Hold{{Owner: other, Count: 3}}, state.Holds)
	require.Empty(t, state.Mode)
	require.InDelta(t, lease, state.TTL, float64(5*time.Second))
	requireLock(t, s, lock, map[string]string{other: "3"}, lease)
}

func TestLockThatNeverExpiresSaysSo(t *testing.T) {
	s, c := start(t)
	hold(t, s, lock, other, "1", lua.NoExpiry)
	state, err := lua.Inspect(t.Context(), c, lock)
	require.NoError(t, err)
	require.Equal(
		t,
		lua.State{Holds: []lua.Hold{{Owner: other, Count: 1}}, TTL: lua.NoExpiry},
		state,
	)
}

func TestHashThatIsNoLockIsRefused(t *testing.T) {
	s, c := start(t)
	s.Do(t, "HSET", lock, "colour", "green")
	_, err := lua.Inspect(t.Context(), c, lock)
	e := requireError(t, err, lua.ClassPermanent, "")
	require.Contains(t, e.Message, `"colour"`)
	require.Contains(t, e.Message, `"order:42"`)
}

func TestInspectOfAKeyOfAnotherTypeIsRefused(t *testing.T) {
	s, c := start(t)
	s.Do(t, "SET", lock, "a page")
	_, err := lua.Inspect(t.Context(), c, lock)
	requireError(t, err, lua.ClassPermanent, "WRONGTYPE")
}
