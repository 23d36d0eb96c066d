package lua_test

import (
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/lua"
)

// releaseOf returns the release that leaves a count behind, announced on the lock's own channel.
func releaseOf(lock, owner string, count int) lua.BatchPart {
	return lua.BatchPart{Lock: lock, Channel: lua.Channel(lock), Owner: owner, Count: count}
}

func releaseBatch(
	t *testing.T,
	c rueidis.CoreClient,
	releases ...lua.BatchPart,
) []lua.BatchReleased {
	t.Helper()
	parts, err := lua.ReleaseBatch(t.Context(), c, lua.Classic, releases)
	require.NoError(t, err)
	require.Len(t, parts, len(releases))
	return parts
}

var (
	gone = lua.BatchReleased{Released: lua.Released{Held: true}}
	none = lua.BatchReleased{}
)

func TestBatchReleasesAndAnnouncesEachLockAsReleaseDoes(t *testing.T) {
	s, c := start(t)
	hold(t, s, north, me, "3", lease)
	hold(t, s, middle, other, "1", lease)
	hold(t, s, south, me, "2", 3*lease)
	freed := subscribe(t, s, "SUBSCRIBE", lua.Channel(north))
	others := subscribe(t, s, "SUBSCRIBE", lua.Channel(middle))
	lowered := subscribe(t, s, "SUBSCRIBE", lua.Channel(south))
	// Release twice, as after a lost reply.
	for _, want := range [][]lua.BatchReleased{{gone, none, gone, none}, {none, none, gone, none}} {
		require.Equal(t, want, releaseBatch(
			t,
			c,
			releaseOf(
				north,
				me,
				0,
			),
			releaseOf(middle, me, 0),
			releaseOf(south, me, 1),
			releaseOf("free", me, 0),
		))
		requireFree(t, s, north)
		requireLock(t, s, middle, map[string]string{other: "1"}, lease)
		requireLock(t, s, south, map[string]string{me: "1"}, 3*lease)
		requireFree(t, s, "free")
	}
	freed.requireBytes(t, array("message", lua.Channel(north), "0"))
	freed.requireNothing(t)
	others.requireNothing(t)
	lowered.requireNothing(t)
}

func TestEmptyBatchReleasesNothing(t *testing.T) {
	_, c := start(t)
	require.Empty(t, releaseBatch(t, c))
}

func TestBatchReleasesLocksOfDifferentOwners(t *testing.T) {
	s, c := start(t)
	hold(t, s, north, me, "1", lease)
	hold(t, s, middle, other, "1", lease)
	sub := subscribe(t, s, "SUBSCRIBE", lua.Channel(middle))
	require.Equal(
		t,
		[]lua.BatchReleased{gone, gone},
		releaseBatch(t, c, releaseOf(north, me, 0), releaseOf(middle, other, 0)),
	)
	sub.requireBytes(t, array("message", lua.Channel(middle), "0"))
}

func TestKeyThatIsNoLockDoesNotKeepTheOthersFromBeingReleased(t *testing.T) {
	s, c := start(t)
	hold(t, s, north, me, "1", lease)
	s.Do(t, "SET", middle, "a page")
	hold(t, s, south, me, "2", lease)
	parts := releaseBatch(
		t,
		c,
		releaseOf(north, me, 0),
		releaseOf(middle, me, 0),
		releaseOf(south, me, 1),
	)
	require.Equal(t, gone, parts[0])
	requireError(t, parts[1].Err, lua.ClassPermanent, "WRONGTYPE")
	require.Equal(t, lua.Released{}, parts[1].Released)
	require.Equal(t, gone, parts[2])
	requireFree(t, s, north)
	require.Equal(t, "a page", s.DoString(t, "GET", middle))
	requireLock(t, s, south, map[string]string{me: "1"}, lease)
}
