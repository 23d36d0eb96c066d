package lua_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/lua"
)

func TestFreeLockIsTaken(t *testing.T) {
	s, c := start(t)
	holder, err := lockPlain(t.Context(), c, lock, me, lease)
	require.NoError(t, err)
	require.Nil(t, holder)
	requireLock(t, s, lock, map[string]string{me: "1"}, lease)
	require.EqualValues(t, 1, s.DoInt(t, "DBSIZE"))
}

func TestAcquireOfTheOwnersLockSetsACountOfOne(t *testing.T) {
	s, c := start(t)
	hold(t, s, lock, me, "7", lease)
	holder, err := lockPlain(t.Context(), c, lock, me, lease)
	require.NoError(t, err)
	require.Nil(t, holder)
	requireLock(t, s, lock, map[string]string{me: "1"}, lease)
}

func TestAcquireExtendsTheLeaseOfTheOwner(t *testing.T) {
	s, c := start(t)
	hold(t, s, lock, me, "1", lease)
	_, err := lockPlain(t.Context(), c, lock, me, 3*lease)
	require.NoError(t, err)
	requireTTL(t, s, lock, 3*lease)
}

func TestAcquireNeverShortensTheLeaseOfTheOwner(t *testing.T) {
	s, c := start(t)
	hold(t, s, lock, me, "2", 3*lease)
	_, err := lockPlain(t.Context(), c, lock, me, lease)
	require.NoError(t, err)
	requireLock(t, s, lock, map[string]string{me: "1"}, 3*lease)
}

func TestLockOfAnotherIsRefusedAndUntouched(t *testing.T) {
	s, c := start(t)
	hold(t, s, lock, other, "3", lease)
	holder, err := lockPlain(t.Context(), c, lock, me, 3*lease)
	require.NoError(t, err)
	require.Equal(t, other, holder.Owner)
	require.InDelta(t, lease, holder.TTL, float64(5*time.Second))
	requireLock(t, s, lock, map[string]string{other: "3"}, lease)
}

func TestLockWithoutExpiryIsHeld(t *testing.T) {
	s, c := start(t)
	hold(t, s, lock, other, "1", lua.NoExpiry)
	holder, err := lockPlain(t.Context(), c, lock, me, lease)
	require.NoError(t, err)
	require.Equal(t, &lua.Holder{Owner: other, TTL: lua.NoExpiry}, holder)
	requireLock(t, s, lock, map[string]string{other: "1"}, lua.NoExpiry)
}

func TestOwnersLockWithoutExpiryGetsALease(t *testing.T) {
	s, c := start(t)
	hold(t, s, lock, me, "1", lua.NoExpiry)
	holder, err := lockPlain(t.Context(), c, lock, me, lease)
	require.NoError(t, err)
	require.Nil(t, holder)
	requireTTL(t, s, lock, lease)
}

func TestKeyOfAnotherTypeIsNotALock(t *testing.T) {
	s, c := start(t)
	s.Do(t, "SET", lock, "a page")
	_, err := lockPlain(t.Context(), c, lock, me, lease)
	requireError(t, err, lua.ClassPermanent, "WRONGTYPE")
	require.Equal(t, "a page", s.DoString(t, "GET", lock))
	requireTTL(t, s, lock, lua.NoExpiry)
}

func TestExpiredLockIsFree(t *testing.T) {
	s, c := start(t)
	hold(t, s, lock, other, "1", time.Millisecond)
	require.Eventually(t, func() bool {
		holder, err := lockPlain(t.Context(), c, lock, me, lease)
		return err == nil && holder == nil
	}, eventually, poll)
	requireLock(t, s, lock, map[string]string{me: "1"}, lease)
}

func TestReenteredLockHasTheGivenCount(t *testing.T) {
	s, c := start(t)
	hold(t, s, lock, me, "1", lease)
	reentered, err := lua.Reenter(t.Context(), c, lua.Held{Lock: lock, Owner: me}, 2, 3*lease)
	require.NoError(t, err)
	require.True(t, reentered)
	requireLock(t, s, lock, map[string]string{me: "2"}, 3*lease)
}

func TestReenterNeverShortensTheLease(t *testing.T) {
	s, c := start(t)
	hold(t, s, lock, me, "1", 3*lease)
	reentered, err := lua.Reenter(t.Context(), c, lua.Held{Lock: lock, Owner: me}, 2, lease)
	require.NoError(t, err)
	require.True(t, reentered)
	requireLock(t, s, lock, map[string]string{me: "2"}, 3*lease)
}

func TestReenterDoesNotTakeAFreeLock(t *testing.T) {
	s, c := start(t)
	reentered, err := lua.Reenter(t.Context(), c, lua.Held{Lock: lock, Owner: me}, 2, lease)
	require.NoError(t, err)
	require.False(t, reentered)
	requireFree(t, s, lock)
}

func TestReenterDoesNotTouchTheLockOfAnother(t *testing.T) {
	s, c := start(t)
	hold(t, s, lock, other, "1", lease)
	reentered, err := lua.Reenter(t.Context(), c, lua.Held{Lock: lock, Owner: me}, 2, 3*lease)
	require.NoError(t, err)
	require.False(t, reentered)
	requireLock(t, s, lock, map[string]string{other: "1"}, lease)
}
