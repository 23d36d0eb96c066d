package lua_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/lua"
)

// The owner relies on the longest lease it was given, whichever of its levels is left. A nested
// read that was given up, but is executed late, after others, must not take that lease back.
func TestLateNestedReadNeverShortensTheReadsAboveIt(t *testing.T) {
	s, c := start(t)
	read(t, c, me, 1, time.Second)
	for i, lasts := range []time.Duration{lease, 3 * lease} {
		held, err := lua.Reenter(t.Context(), c, lua.Held{Lock: pair.Lock, Owner: me, Read: true},
			i+2, lasts)
		require.NoError(t, err)
		require.True(t, held)
	}
	held, err := lua.Reenter(t.Context(), c, lua.Held{Lock: pair.Lock, Owner: me, Read: true}, 2,
		time.Second)
	require.NoError(t, err)
	require.True(t, held)
	requireLock(t, s, lock, map[string]string{"mode": "read", me: "2"}, 3*lease)
	requireTTL(t, s, holdKey(me, 2), 3*lease)
	requireKeys(t, s, lock, holdKey(me, 1), holdKey(me, 2))

	// Nor does the release of another reader take the lock away from it.
	read(t, c, other, 1, lease)
	_, err = pair.ReleaseRead(t.Context(), c, other, 0)
	require.NoError(t, err)
	requireLock(t, s, lock, map[string]string{"mode": "read", me: "2"}, 3*lease)
}
