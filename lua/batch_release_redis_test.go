//go:build redis

package lua_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/lua"
)

func TestRefusedLevelDoesNotKeepTheOthersFromBeingReleased(t *testing.T) {
	s, c := startAs(t, "-hset")
	hold(t, s, north, me, "2", lease)
	hold(t, s, middle, me, "1", lease)
	parts := releaseBatch(t, c, releaseOf(north, me, 1), releaseOf(middle, me, 0))
	requireError(t, parts[0].Err, lua.ClassPermanent, "NOPERM")
	require.Equal(t, gone, parts[1])
	requireLock(t, s, north, map[string]string{me: "2"}, lease)
	requireFree(t, s, middle)
}

func TestLockThatMayNotBeReleasedDoesNotKeepTheOthersFromBeingReleased(t *testing.T) {
	s, c := startNotOnSouth(t, "hdel")
	hold(t, s, south, me, "2", lease)
	hold(t, s, middle, me, "1", lease)
	sub := subscribe(t, s, "SUBSCRIBE", lua.Channel(south))
	if !rulesPerKey(t, s) { // the script is refused
		_, err := lua.ReleaseBatch(
			t.Context(),
			c,
			lua.Classic,
			[]lua.BatchPart{releaseOf(south, me, 0), releaseOf(middle, me, 0)},
		)
		requireError(t, err, lua.ClassPermanent, "NOPERM")
		requireLock(t, s, south, map[string]string{me: "2"}, lease)
		requireLock(t, s, middle, map[string]string{me: "1"}, lease)
		return
	}
	parts := releaseBatch(t, c, releaseOf(south, me, 0), releaseOf(middle, me, 0))
	requireError(t, parts[0].Err, lua.ClassPermanent, "NOPERM")
	require.Equal(t, gone, parts[1])
	requireLock(t, s, south, map[string]string{me: "2"}, lease)
	requireFree(t, s, middle)
	sub.requireNothing(t)
}

func TestRefusedAnnouncementIsReportedForItsLock(t *testing.T) {
	s, c := startAs(t, "resetchannels", "&"+lua.Channel(middle))
	hold(t, s, north, me, "1", lease)
	hold(t, s, middle, me, "1", lease)
	sub := subscribe(t, s, "SUBSCRIBE", lua.Channel(middle))
	parts := releaseBatch(t, c, releaseOf(north, me, 0), releaseOf(middle, me, 0))
	require.NoError(t, parts[0].Err)
	require.True(t, parts[0].Held)
	require.Regexp(t, "^NOPERM ", parts[0].Refusal)
	require.Equal(t, gone, parts[1])
	requireFree(t, s, north)
	requireFree(t, s, middle)
	sub.requireBytes(t, array("message", lua.Channel(middle), "0"))
}

func TestServerOutOfMemoryReleasesABatch(t *testing.T) {
	s, c := start(t)
	hold(t, s, north, me, "2", lease)
	hold(t, s, middle, me, "2", lease)
	fill(t, s)
	// Redis cannot write the lower count, but the level is released.
	require.Equal(
		t,
		[]lua.BatchReleased{gone, gone},
		releaseBatch(t, c, releaseOf(north, me, 1), releaseOf(middle, me, 0)),
	)
	requireLock(t, s, north, map[string]string{me: "2"}, lease)
	requireFree(t, s, middle)
}

func TestRefusalOfEachReleaseHasItsClass(t *testing.T) {
	s, c := start(t)
	hold(t, s, north, me, "2", lease)
	hold(t, s, middle, me, "1", lease)
	s.Do(t, "CONFIG", "SET", "min-replicas-to-write", "1")
	for _, part := range releaseBatch(t, c, releaseOf(north, me, 1), releaseOf(middle, me, 0)) {
		requireError(t, part.Err, lua.ClassTemporary, "NOREPLICAS")
	}
	requireLock(t, s, north, map[string]string{me: "2"}, lease)
	requireLock(t, s, middle, map[string]string{me: "1"}, lease)
	s.Do(t, "CONFIG", "SET", "min-replicas-to-write", "0")
	s.Do(t, "REPLICAOF", "127.0.0.1", "1")
	for _, part := range releaseBatch(t, c, releaseOf(north, me, 1), releaseOf(middle, me, 0)) {
		requireError(t, part.Err, lua.ClassPermanent, "READONLY")
	}
}
