package lua_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/lua"
)

// clientID is the id of a client.
const clientID = "8743c9c0-0795-4907-87fd-6c719a6b4586"

var nightly = lua.Identity{Program: "billing", Host: "web-1", PID: 4711,
	Start: time.UnixMilli(1700000000123), Label: "nightly"}

func TestIdentityIsAHashOfItsOwnWithATTL(t *testing.T) {
	s, c := start(t)
	require.NoError(t, lua.Identify(t.Context(), c, clientID, nightly, lease))
	key := "holdfast_client:{" + clientID + "}"
	require.Equal(t, map[string]string{"program": "billing", "host": "web-1", "pid": "4711",
		"start": "1700000000123", "label": "nightly"}, s.DoMap(t, "HGETALL", key))
	requireTTL(t, s, key, lease)
	read, err := lua.ReadIdentity(t.Context(), c, clientID)
	require.NoError(t, err)
	require.Equal(t, nightly, read)
	require.NoError(t, lua.Forget(t.Context(), c, clientID))
	require.EqualValues(t, 0, s.Do(t, "EXISTS", key))
}

func TestIdentityThatIsRepeatedBeginsItsTTLAnew(t *testing.T) {
	s, c := start(t)
	require.NoError(t, lua.Identify(t.Context(), c, clientID, nightly, time.Minute))
	require.NoError(t, lua.Identify(t.Context(), c, clientID, nightly, lease))
	require.Len(t, s.DoMap(t, "HGETALL", lua.ClientKey(clientID)), 5)
	requireTTL(t, s, lua.ClientKey(clientID), lease)
}

func TestClientThatToldNothingHasNoIdentity(t *testing.T) {
	_, c := start(t)
	read, err := lua.ReadIdentity(t.Context(), c, clientID)
	require.NoError(t, err)
	require.Zero(t, read)
}

func TestFieldsOfAnIdentityThatCannotBeReadAreIgnored(t *testing.T) {
	s, c := start(t)
	s.Do(t, "HSET", lua.ClientKey(clientID), "host", "web-1", "pid", "many", "start", "", "new", "1")
	read, err := lua.ReadIdentity(t.Context(), c, clientID)
	require.NoError(t, err)
	require.Equal(t, lua.Identity{Host: "web-1"}, read)
}

func TestIdentityNamesHostProcessAndLabel(t *testing.T) {
	require.Equal(t, "host web-1, pid 4711, nightly", nightly.String())
	require.Equal(t, "host web-1, pid 4711", lua.Identity{Host: "web-1", PID: 4711}.String())
	require.Equal(t, "pid 4711", lua.Identity{PID: 4711}.String())
	require.Empty(t, lua.Identity{}.String())
	require.Equal(t, `host a\x1b[2J\nb, "é\a"`,
		lua.Identity{Host: "a\x1b[2J\nb", Label: "\"é\a\""}.String())
}
