package lua_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/wire"
	"holdfast/lua"
)

func TestKeptLockLastsAsLongAsItIsKept(t *testing.T) {
	s, c := start(t)
	for _, left := range []time.Duration{lease / 2, 2 * lease} { // shorter and longer than before
		s.Do(t, "FLUSHALL")
		hold(t, s, lock, me, "3", lease)
		k := keeping(lua.Keeping{})
		k.For = left
		released, err := lua.Keep(t.Context(), c, k)
		require.NoError(t, err)
		require.Equal(t, lua.Released{Held: true}, released)
		requireLock(t, s, lock, map[string]string{next: "1"}, left)
	}
}

func TestRepeatedKeepDoesNotProlongTheLock(t *testing.T) {
	s, c := start(t)
	hold(t, s, lock, me, "1", lease)
	k := keeping(lua.Keeping{})
	for _, left := range []time.Duration{lease / 2, lease, lease / 4, lease / 2} {
		k.For = left
		released, err := lua.Keep(t.Context(), c, k)
		require.NoError(t, err)
		require.True(t, released.Held)
	}
	requireLock(t, s, lock, map[string]string{next: "1"}, lease/4)
}

func TestLateKeepDoesNotTouchTheLockOfAnotherOwner(t *testing.T) {
	s, c := start(t)
	for _, kind := range []lua.Keeping{{}, {Fair: true}, {ReadWrite: true}} {
		s.Do(t, "FLUSHALL")
		hold(t, s, lock, other, "1", lease)
		messages := attend(t, s)
		released, err := lua.Keep(t.Context(), c, keeping(kind))
		require.NoError(t, err)
		require.Zero(t, released)
		requireLock(t, s, lock, map[string]string{other: "1"}, lease)
		messages.requireNothing(t)
	}
}

// What is late has the name of the owner that released the lock.
func TestLateCommandsOfTheOwnerDoNotTouchAKeptLock(t *testing.T) {
	s, c := start(t)
	hold(t, s, lock, me, "1", lease)
	_, err := lua.Keep(t.Context(), c, keeping(lua.Keeping{}))
	require.NoError(t, err)
	mine := lua.Held{Lock: lock, Owner: me}
	held, err := lua.Renew(t.Context(), c, longer, []lua.Held{mine})
	require.NoError(t, err)
	require.Equal(t, []bool{false}, held)
	again, err := lua.Reenter(t.Context(), c, mine, 2, longer)
	require.NoError(t, err)
	require.False(t, again)
	_, _, holder, err := plain.Acquire(t.Context(), c, me, longer, "")
	require.NoError(t, err)
	require.Equal(t, next, holder.Owner)
	released, err := plain.Release(t.Context(), c, me, 0, toAll)
	require.NoError(t, err)
	require.False(t, released.Held)
	requireLock(t, s, lock, map[string]string{next: "1"}, lease/2)
}

func TestKeepMakesWaitersAskAgain(t *testing.T) {
	s, c := start(t)
	for _, of := range []struct {
		kind             lua.Keeping
		state            string
		channel, message string
	}{
		{lua.Keeping{}, "mine", wire.Channel(lock), wire.Unlocked},
		{lua.Keeping{ReadWrite: true}, "writes", wire.RWChannel(lock), wire.UnlockedForAll},
		{lua.Keeping{Fair: true}, "queued for another's", wire.FairChannel(lock, me), wire.Unlocked},
	} {
		plant(t, s, of.state)
		messages, k := listen(t, s, "SUBSCRIBE", of.channel), keeping(of.kind)
		if k.Fair {
			k.Owner = other // me is the head of the queue
		}
		released, err := lua.Keep(t.Context(), c, k)
		require.NoError(t, err)
		require.True(t, released.Held)
		messages.requireBytes(t, array("message", of.channel, of.message))
		messages.requireNothing(t)
	}
}
