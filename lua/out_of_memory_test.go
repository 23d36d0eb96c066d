//go:build redis

package lua_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/lua"
)

// fill leaves a server no memory for another byte.
func fill(t *testing.T, s *redistest.Server) {
	t.Helper()
	s.Do(t, "CONFIG", "SET", "maxmemory-policy", "noeviction")
	s.Do(t, "CONFIG", "SET", "maxmemory", "1")
	_, err := s.Call("SET", "filler", "x")
	require.ErrorContains(t, err, "OOM")
}

func TestServerOutOfMemoryRefusesALock(t *testing.T) {
	s, c := start(t)
	fill(t, s)
	_, err := lockPlain(t.Context(), c, lock, me, lease)
	e := requireError(t, err, lua.ClassPermanent, "OOM")
	require.Contains(t, e.Advice, "maxmemory")
	requireFree(t, s, lock)
}

func TestServerOutOfMemoryRefusesAnotherLevel(t *testing.T) {
	s, c := start(t)
	hold(t, s, lock, me, "1", lease)
	fill(t, s)
	_, err := lua.Reenter(t.Context(), c, lua.Held{Lock: lock, Owner: me}, 2, 3*lease)
	requireError(t, err, lua.ClassPermanent, "OOM")
	requireLock(t, s, lock, map[string]string{me: "1"}, lease)
}

func TestServerOutOfMemoryStillSaysWhoHoldsALock(t *testing.T) {
	s, c := start(t)
	hold(t, s, lock, other, "1", lease)
	fill(t, s)
	holder, err := lockPlain(t.Context(), c, lock, me, lease)
	require.NoError(t, err)
	require.Equal(t, other, holder.Owner)
	state, err := lua.Inspect(t.Context(), c, lock)
	require.NoError(t, err)
	require.Equal(t, []lua.Hold{{Owner: other, Count: 1}}, state.Holds)
}

func TestServerOutOfMemoryReleases(t *testing.T) {
	s, c := start(t)
	hold(t, s, lock, me, "2", lease)
	sub := subscribe(t, s, "SUBSCRIBE", lockChannel)
	fill(t, s)

	// Redis cannot write the count, but the level is released.
	out, err := unlock(t.Context(), c, lock, me, 1)
	require.NoError(t, err)
	require.Equal(t, lua.Released{Held: true}, out)
	requireLock(t, s, lock, map[string]string{me: "2"}, lease)

	out, err = unlock(t.Context(), c, lock, me, 0)
	require.NoError(t, err)
	require.Equal(t, lua.Released{Held: true}, out)
	requireFree(t, s, lock)
	sub.requireBytes(t, unlocked)
}

func TestServerOutOfMemoryForceUnlocks(t *testing.T) {
	s, c := start(t)
	hold(t, s, lock, other, "2", lease)
	fill(t, s)
	out, err := plain.ForceUnlock(t.Context(), c, lua.Classic)
	require.NoError(t, err)
	require.True(t, out.Held)
	requireFree(t, s, lock)
}

func TestServerOutOfMemoryRenews(t *testing.T) {
	s, c := start(t)
	hold(t, s, lock, me, "1", lease)
	fill(t, s)
	held, err := lua.Renew(t.Context(), c, 3*lease, []lua.Held{{Lock: lock, Owner: me}})
	require.NoError(t, err)
	require.Equal(t, []bool{true}, held)
	requireTTL(t, s, lock, 3*lease)
}
