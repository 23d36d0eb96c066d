package lua_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/wire"
	"holdfast/lua"
)

// Another program may take read holds that never end.
func TestHoldKeyWithoutExpiryCountsAsHeld(t *testing.T) {
	for _, writes := range []bool{false, true} {
		s, c := start(t)
		plant(t, s, "another reads")
		s.Do(t, "PERSIST", holdKey(other, 1))
		var err error
		if writes {
			s.Do(t, "HSET", lock, "mode", "write", wire.WriteField(other), "1")
			_, err = pair.ReleaseWrite(t.Context(), c, other, 0, "", 0)
		} else {
			_, err = pair.AcquireRead(t.Context(), c, me, 1, lease, true, false)
			require.NoError(t, err)
			_, err = pair.ReleaseRead(t.Context(), c, me, 0)
		}
		require.NoError(t, err)
		requireLock(t, s, lock, map[string]string{"mode": "read", other: "2"}, 2*lease)
		requireTTL(t, s, holdKey(other, 1), wire.NoExpiry)
		reentered, err := lua.Reenter(t.Context(), c,
			lua.Held{Lock: lock, Owner: other, Read: true}, 3, lease)
		require.NoError(t, err)
		require.True(t, reentered)
		holder, err := pair.AcquireWrite(t.Context(), c, me, 1, lease, true)
		require.NoError(t, err)
		require.Equal(t, other, holder.Owner)
	}
}

func TestReadsAreRenewedForTheirOwnerOnly(t *testing.T) {
	s, c := start(t)
	plant(t, s, "reads")
	s.Do(t, "HSET", lock, other, "1")
	s.Do(t, "SET", holdKey(other, 1), "1", "PX", ms(lease))
	hold(t, s, "plain", me, "1", lease)
	s.Do(t, "SET", "page", "text")
	held, err := lua.Renew(t.Context(), c, 3*lease/2, []lua.Held{{lock, me, true},
		{lock, "nobody:1", true}, {"plain", me, true}, {"page", me, true}, {"free", me, true}})
	require.NoError(t, err)
	require.Equal(t, []bool{true, false, false, false, false}, held)
	requireTTL(t, s, holdKey(me, 1), 3*lease/2)
	requireTTL(t, s, holdKey(me, 2), 2*lease)
	requireTTL(t, s, holdKey(other, 1), lease)
	requireTTL(t, s, lock, 2*lease)
	requireTTL(t, s, "plain", lease)
}

// A lock that is handed over is not announced, and the waiters knew of the lease before.
func TestWriteLockHandedOverForAShortLeaseIsAnnouncedToWaiters(t *testing.T) {
	s, c := start(t)
	sub := listen(t, s, "SUBSCRIBE", pairChannel)
	plant(t, s, "writes")
	out, err := pair.ReleaseWrite(t.Context(), c, me, 0, wire.WriteField(other), lua.LongestSleep-1)
	require.NoError(t, err)
	require.Equal(t, lua.Successor, out.To)
	sub.requireBytes(t, array("message", pairChannel, "4999"))
	out, err = pair.ReleaseWrite(t.Context(), c, other, 0, wire.WriteField(me), lua.LongestSleep)
	require.NoError(t, err)
	require.Equal(t, lua.Successor, out.To)
	sub.requireNothing(t)
}

func TestWriterWithoutPrecedenceLooksForNoWaiters(t *testing.T) {
	s, c := start(t)
	_, err := pair.AcquireWrite(t.Context(), c, me, 1, lease, true)
	require.NoError(t, err)
	_, err = pair.ReleaseWrite(t.Context(), c, me, 0, "", 0)
	require.NoError(t, err)
	require.Zero(t, s.CommandStats(t)["get"])
}
