//go:build redis

package lua_test

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/fragments"
	"holdfast/internal/luashim"
	"holdfast/internal/redistest"
	"holdfast/lua"
)

// undeclared has a use of each script that uses keys which its caller cannot declare: the read
// holds of other owners, or those of its own that it does not know of.
var undeclared = map[string]func(*testing.T, rueidis.Client){
	"read_acquire.lua": func(t *testing.T, c rueidis.Client) { read(t, c, me, 1, lease) },
	"read_reenter.lua": func(t *testing.T, c rueidis.Client) {
		_, err := lua.Reenter(t.Context(), c, lua.Held{Lock: lock, Owner: me, Read: true}, 2, lease)
		require.NoError(t, err)
	},
	"read_release.lua": func(t *testing.T, c rueidis.Client) {
		_, err := pair.ReleaseRead(t.Context(), c, me, 0)
		require.NoError(t, err)
	},
	"read_renew.lua": func(t *testing.T, c rueidis.Client) {
		_, err := lua.Renew(t.Context(), c, lease,
			[]lua.Held{{Lock: lock, Owner: other, Read: true}, {Lock: lock, Owner: me, Read: true}})
		require.NoError(t, err)
	},
	"readwrite_force_unlock.lua": func(t *testing.T, c rueidis.Client) {
		_, err := pair.ForceUnlock(t.Context(), c, "read")
		require.NoError(t, err)
	},
	"write_release.lua": func(t *testing.T, c rueidis.Client) {
		_, err := pair.ForceUnlock(t.Context(), c, "read")
		require.NoError(t, err)
		write(t, c, me, lease)
		read(t, c, me, 1, lease)
		_, err = pair.ReleaseWrite(t.Context(), c, me, 0, "", 0)
		require.NoError(t, err)
	},
}

// The other half is that TestMain has all other tests fail if a script without the flag uses an
// undeclared key.
func TestScriptsWithTheFlagUseUndeclaredKeys(t *testing.T) {
	var flagged []string
	sources := fragments.Read(os.DirFS("."))
	for file, source := range sources {
		if strings.HasPrefix(source, luashim.Flag) {
			flagged = append(flagged, file)
		}
		require.NotContains(t, strings.TrimPrefix(source, luashim.Flag), "--!",
			"%s: the flag is not in the first line", file)
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(undeclared)), flagged)
	for file, use := range undeclared {
		t.Run(file, func(t *testing.T) {
			s, c := start(t, redistest.WithScripts(luashim.Declared))
			plantReader(t, s, lease, lease)
			read(t, c, me, 2, lease)
			use(t, c)
			purpose, _, _ := strings.Cut(strings.TrimPrefix(sources[file], luashim.Flag), "\n")
			require.Contains(t, s.Log(), purpose+" "+luashim.Allowed+":")
		})
	}
}

// The keys of one call are in one slot, also those that are not declared.
func TestReadHoldsAreInTheSlotOfTheirLock(t *testing.T) {
	for _, name := range []string{lock, "{a}b", "b{a}"} {
		s, c := start(t)
		rw := lua.ReadWrite{Lock: name}
		_, err := rw.AcquireRead(t.Context(), c, me, 1, lease, false, false)
		require.NoError(t, err)
		keys := s.Keys(t)
		require.Len(t, keys, 2)
		for _, key := range keys {
			require.Equal(t, lua.Slot(name), lua.Slot(key), key)
		}
	}
}
