package lua_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/lua"
)

// A connection may be lost with the command under way, which then arrives after the next one.
func TestAttachThatComesOnceMoreDoesNotShortenTheLease(t *testing.T) {
	s, c := start(t)
	hold(t, s, lock, other, "1", 3*lease)
	attach := func() {
		attached, err := lua.Attach(t.Context(), c, lock, other, me, lease)
		require.NoError(t, err)
		require.True(t, attached)
	}
	attach()
	requireLock(t, s, lock, map[string]string{me: "1"}, lease)
	held, err := lua.Renew(t.Context(), c, 2*lease, []lua.Held{{Lock: lock, Owner: me}})
	require.NoError(t, err)
	require.Equal(t, []bool{true}, held)
	attach()
	requireLock(t, s, lock, map[string]string{me: "1"}, 2*lease)
}
