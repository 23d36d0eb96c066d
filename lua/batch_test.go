package lua_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/rediserr"
	"holdfast/internal/wire"
	"holdfast/lua"
)

// parts returns requests of me for locks that are free.
func parts(locks ...string) (requests []lua.BatchPart) {
	for _, lock := range locks {
		requests = append(requests, lua.BatchPart{Lock: lock, Owner: me, Count: 1})
	}
	return requests
}

func TestBatchTakesNothingWhenOneLockIsHeld(t *testing.T) {
	s, c := start(t)
	for _, left := range []time.Duration{lease, wire.NoExpiry} {
		for index, lock := range []string{north, middle, south} {
			s.Do(t, "FLUSHALL")
			hold(t, s, lock, other, "2", left)
			got, holder, err := lua.AcquireBatch(t.Context(), c, longer, parts(north, middle, south))
			require.NoError(t, err)
			require.Equal(t, index, got)
			require.NotNil(t, holder)
			require.Equal(t, other, holder.Owner)
			require.InDelta(t, left, holder.TTL, float64(5*time.Second))
			require.False(t, holder.Next)
			require.Zero(t, holder.Sleep)
			requireLock(t, s, lock, map[string]string{other: "2"}, left)
			require.EqualValues(t, 1, s.DoInt(t, "DBSIZE"), "the others are free")
		}
	}
}

func TestBatchExtendsLeasesAndNeverShortensOne(t *testing.T) {
	s, c := start(t)
	hold(t, s, north, me, "1", lease)
	hold(t, s, middle, me, "1", 5*lease)
	hold(t, s, south, me, "1", wire.NoExpiry)
	requests := parts(north, middle, south)
	requests[1].Count, requests[1].Nested = 2, true
	index, holder, err := lua.AcquireBatch(t.Context(), c, longer, requests)
	require.NoError(t, err)
	require.Equal(t, -1, index)
	require.Nil(t, holder)
	requireLock(t, s, north, map[string]string{me: "1"}, longer)
	requireLock(t, s, middle, map[string]string{me: "2"}, 5*lease)
	requireLock(t, s, south, map[string]string{me: "1"}, longer)
}

func TestBatchTakesNothingWhenALevelIsForALostLock(t *testing.T) {
	s, c := start(t)
	for _, state := range []string{"free", "another's", "another reads"} {
		plant(t, s, state)
		before := everything(t, s)
		requests := parts(north, lock)
		requests[1].Count, requests[1].Nested = 2, true
		index, holder, err := lua.AcquireBatch(t.Context(), c, lease, requests)
		require.NoError(t, err)
		require.Equal(t, 1, index)
		require.Nil(t, holder)
		require.Equal(t, before, everything(t, s))
	}
}

// Without this check, the lock would be free for both requests.
func TestBatchThatNamesALockTwiceTakesNothing(t *testing.T) {
	s, c := start(t)
	_, _, err := lua.AcquireBatch(t.Context(), c, lease, parts(north, middle, north))
	e := requireError(t, err, rediserr.ClassPermanent, "")
	require.Contains(t, e.Message, `"account:1"`)
	require.Zero(t, s.DoInt(t, "DBSIZE"))
}

// releaseBatch releases locks of me, to a count each.
func releaseBatch(t *testing.T, c client, releases ...lua.BatchPart) []lua.BatchReleased {
	t.Helper()
	outcomes, err := lua.ReleaseBatch(t.Context(), c, wire.Classic, releases)
	require.NoError(t, err)
	require.Len(t, outcomes, len(releases))
	return outcomes
}

var gone = lua.BatchReleased{Released: lua.Released{Held: true}}

func TestBatchReleasesAndAnnouncesEachLockAsReleaseDoes(t *testing.T) {
	s, c := start(t)
	hold(t, s, north, me, "3", lease)
	hold(t, s, middle, other, "1", lease)
	hold(t, s, south, me, "2", longer)
	sub := listen(t, s, "SUBSCRIBE", wire.Channel(north), wire.Channel(middle), wire.Channel(south))
	none := lua.BatchReleased{}
	// Release twice, as after a lost reply.
	for _, want := range [][]lua.BatchReleased{{gone, none, gone, none}, {none, none, gone, none}} {
		require.Equal(t, want, releaseBatch(t, c, releaseOf(north, 0), releaseOf(middle, 0),
			releaseOf(south, 1), releaseOf("free", 0)))
		requireLock(t, s, middle, map[string]string{other: "1"}, lease)
		requireLock(t, s, south, map[string]string{me: "1"}, longer)
		require.EqualValues(t, 2, s.DoInt(t, "DBSIZE"))
	}
	sub.requireBytes(t, array("message", wire.Channel(north), "0"))
	sub.requireNothing(t)
}

func TestKeyThatIsNoLockDoesNotKeepTheOthersFromBeingReleased(t *testing.T) {
	s, c := start(t)
	hold(t, s, north, me, "1", lease)
	s.Do(t, "SET", middle, "a page")
	hold(t, s, south, me, "2", lease)
	outcomes := releaseBatch(t, c, releaseOf(north, 0), releaseOf(middle, 0),
		releaseOf(south, 1))
	require.Equal(t, gone, outcomes[0])
	requireError(t, outcomes[1].Err, rediserr.ClassPermanent, "WRONGTYPE")
	require.Equal(t, lua.Released{}, outcomes[1].Released)
	require.Equal(t, gone, outcomes[2])
	requireFree(t, s, north)
	require.Equal(t, "a page", s.DoString(t, "GET", middle))
	requireLock(t, s, south, map[string]string{me: "1"}, lease)
}
