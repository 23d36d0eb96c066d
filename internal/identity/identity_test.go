package identity_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/identity"
	"holdfast/internal/redistest"
	"holdfast/internal/wire"
)

// clientID is the id of a client.
const clientID = "8743c9c0-0795-4907-87fd-6c719a6b4586"

var nightly = identity.Identity{Program: "billing", Host: "web-1", PID: 4711,
	Start: time.UnixMilli(1700000000123), Label: "nightly"}

func TestIdentityIsAHashOfItsOwnWithATTL(t *testing.T) {
	s := redistest.Start(t)
	c := s.Client(t)
	require.NoError(t, identity.Note(t.Context(), c, clientID, nightly, time.Minute))
	key := "holdfast_client:{" + clientID + "}"
	require.Equal(t, map[string]string{"program": "billing", "host": "web-1", "pid": "4711",
		"start": "1700000000123", "label": "nightly"}, s.DoMap(t, "HGETALL", key))
	require.InDelta(t, time.Minute.Milliseconds(), s.DoInt(t, "PTTL", key), 5000)
	read, err := identity.Read(t.Context(), c, clientID)
	require.NoError(t, err)
	require.Equal(t, nightly, read)
	require.NoError(t, identity.Forget(t.Context(), c, clientID))
	require.EqualValues(t, 0, s.Do(t, "EXISTS", key))
}

func TestTheStartOfAHoldIsPartOfTheIdentity(t *testing.T) {
	s := redistest.Start(t)
	c := s.Client(t)
	since := time.UnixMilli(1700000001456)
	require.NoError(t, identity.NoteHold(t.Context(), c, clientID, since, time.Minute))
	require.InDelta(t, time.Minute.Milliseconds(), s.DoInt(t, "PTTL", wire.ClientKey(clientID)), 5000)
	require.NoError(t, identity.Note(t.Context(), c, clientID, nightly, time.Minute))
	who, held, err := identity.ReadHold(t.Context(), c, clientID)
	require.NoError(t, err)
	require.Equal(t, nightly, who)
	require.Equal(t, since, held)
	s.Do(t, "HSET", wire.ClientKey(clientID), "held", "soon")
	_, held, err = identity.ReadHold(t.Context(), c, clientID)
	require.NoError(t, err)
	require.Zero(t, held)
}

func TestFieldsOfAnIdentityThatCannotBeReadAreIgnored(t *testing.T) {
	s := redistest.Start(t)
	c := s.Client(t)
	s.Do(t, "HSET", wire.ClientKey(clientID), "host", "web-1", "pid", "many", "start", "", "new", "1")
	read, err := identity.Read(t.Context(), c, clientID)
	require.NoError(t, err)
	require.Equal(t, identity.Identity{Host: "web-1"}, read)
}

func TestIdentityNamesHostProcessAndLabel(t *testing.T) {
	require.Equal(t, "host web-1, pid 4711, nightly", nightly.String())
	require.Equal(t, "host web-1, pid 4711", identity.Identity{Host: "web-1", PID: 4711}.String())
	require.Equal(t, "pid 4711", identity.Identity{PID: 4711}.String())
	require.Empty(t, identity.Identity{}.String())
	require.Equal(t, `host a\x1b[2J\nb, "é\a"`,
		identity.Identity{Host: "a\x1b[2J\nb", Label: "\"é\a\""}.String())
}
