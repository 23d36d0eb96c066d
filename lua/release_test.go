package lua_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/lua"
)

// unlocked has the bytes of the announcement as a subscriber on a RESP2 connection receives them.
const unlocked = "*3\r\n$7\r\nmessage\r\n$33\r\nredisson_lock__channel:{order:42}\r\n$1\r\n0\r\n"

func TestLastReleaseDropsTheLockAndAnnouncesIt(t *testing.T) {
	s, c := start(t)
	hold(t, s, lock, me, "1", lease)
	sub := subscribe(t, s, "SUBSCRIBE", lockChannel)
	out, err := unlock(t.Context(), c, lock, me, 0)
	require.NoError(t, err)
	require.Equal(t, lua.Released{Held: true}, out)
	requireFree(t, s, lock)
	sub.requireBytes(t, unlocked)
	sub.requireNothing(t)
}

func TestLastReleaseDropsTheLockWhateverItsCount(t *testing.T) {
	s, c := start(t)
	hold(t, s, lock, me, "9", lease)
	out, err := unlock(t.Context(), c, lock, me, 0)
	require.NoError(t, err)
	require.True(t, out.Held)
	requireFree(t, s, lock)
}

func TestPartialReleaseLeavesCountAndLeaseAndAnnouncesNothing(t *testing.T) {
	s, c := start(t)
	hold(t, s, lock, me, "3", 3*lease)
	sub := subscribe(t, s, "SUBSCRIBE", lockChannel)
	out, err := unlock(t.Context(), c, lock, me, 2)
	require.NoError(t, err)
	require.Equal(t, lua.Released{Held: true}, out)
	requireLock(t, s, lock, map[string]string{me: "2"}, 3*lease)
	sub.requireNothing(t)
}

func TestReleaseByAnotherOwnerIsRefusedAndNotAnnounced(t *testing.T) {
	for name, left := range map[string]int{"partial": 1, "full": 0} {
		t.Run(name, func(t *testing.T) {
			s, c := start(t)
			hold(t, s, lock, other, "2", lease)
			sub := subscribe(t, s, "SUBSCRIBE", lockChannel)
			out, err := unlock(t.Context(), c, lock, me, left)
			require.NoError(t, err)
			require.Equal(t, lua.Released{}, out)
			requireLock(t, s, lock, map[string]string{other: "2"}, lease)
			sub.requireNothing(t)
		})
	}
}

func TestReleaseOfAFreeLockCreatesNoLock(t *testing.T) {
	s, c := start(t)
	for _, left := range []int{0, 1} {
		out, err := unlock(t.Context(), c, lock, me, left)
		require.NoError(t, err)
		require.Equal(t, lua.Released{}, out)
		requireFree(t, s, lock)
	}
}

func TestReleaseOfAKeyOfAnotherTypeIsRefused(t *testing.T) {
	s, c := start(t)
	s.Do(t, "SET", lock, "a page")
	_, err := unlock(t.Context(), c, lock, me, 0)
	requireError(t, err, lua.ClassPermanent, "WRONGTYPE")
	require.Equal(t, "a page", s.DoString(t, "GET", lock))
}

func TestForceUnlockFreesTheLockOfAnyOwnerAndAnnouncesIt(t *testing.T) {
	s, c := start(t)
	hold(t, s, lock, other, "4", lease)
	sub := subscribe(t, s, "SUBSCRIBE", lockChannel)
	out, err := plain.ForceUnlock(t.Context(), c, lua.Classic)
	require.NoError(t, err)
	require.Equal(t, lua.Released{Held: true}, out)
	requireFree(t, s, lock)
	sub.requireBytes(t, unlocked)
	sub.requireNothing(t)
}

func TestForceUnlockOfAFreeLockIsSilent(t *testing.T) {
	s, c := start(t)
	sub := subscribe(t, s, "SUBSCRIBE", lockChannel)
	out, err := plain.ForceUnlock(t.Context(), c, lua.Classic)
	require.NoError(t, err)
	require.Equal(t, lua.Released{}, out)
	sub.requireNothing(t)
}

func TestForceUnlockDoesNotDeleteAKeyOfAnotherType(t *testing.T) {
	s, c := start(t)
	s.Do(t, "SET", lock, "a page")
	_, err := plain.ForceUnlock(t.Context(), c, lua.Classic)
	requireError(t, err, lua.ClassPermanent, "WRONGTYPE")
	require.Equal(t, "a page", s.DoString(t, "GET", lock))
}
