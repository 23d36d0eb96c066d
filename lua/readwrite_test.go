package lua_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/lua"
)

// pair is the read-write lock called lock, without precedence between its modes.
var pair = lua.ReadWrite{Lock: lock}

const pairChannel = "redisson_rwlock:{order:42}"

// holdKey returns the key of an owner's read hold of lock.
func holdKey(owner string, number int) string {
	return "{order:42}:" + owner + ":rwlock_timeout:" + strconv.Itoa(number)
}

// read takes a read hold, which must succeed.
func read(tb testing.TB, c client, owner string, number int, lease time.Duration) {
	tb.Helper()
	holder, err := pair.AcquireRead(tb.Context(), c, owner, number, lease, false, false)
	require.NoError(tb, err)
	require.Nil(tb, holder)
}

// write takes the write lock, which must succeed.
func write(tb testing.TB, c client, owner string, lease time.Duration) {
	tb.Helper()
	holder, err := pair.AcquireWrite(tb.Context(), c, owner, 1, lease, false)
	require.NoError(tb, err)
	require.Nil(tb, holder)
}

// plantReader makes other a reader of another library, with plain commands. Each lease is that of
// one hold.
func plantReader(tb testing.TB, s *redistest.Server, leases ...time.Duration) {
	tb.Helper()
	s.Do(tb, "HSET", lock, "mode", "read", other, strconv.Itoa(len(leases)))
	for i, lease := range leases {
		s.Do(tb, "SET", holdKey(other, i+1), "1")
		if lease != lua.NoExpiry {
			s.Do(tb, "PEXPIRE", holdKey(other, i+1), ms(lease))
		}
	}
	s.Do(tb, "PEXPIRE", lock, ms(max(time.Second, slices.Max(leases))))
}

// requireKeys asserts the names of all keys of a server.
func requireKeys(tb testing.TB, s *redistest.Server, keys ...string) {
	tb.Helper()
	require.ElementsMatch(tb, keys, s.DoStrings(tb, "KEYS", "*"))
}

func TestEachReadHoldHasAKeyOfItsOwn(t *testing.T) {
	for _, test := range []struct{ name, holds string }{
		{"order:42", "{order:42}:" + me + ":rwlock_timeout:"},
		{"{order}42", "{order}42:" + me + ":rwlock_timeout:"},
		{"a{b", "a{b:" + me + ":rwlock_timeout:"},
		{"foo}bar", "{foo}bar}:" + me + ":rwlock_timeout:"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, c := start(t)
			pair := lua.ReadWrite{Lock: test.name}
			_, err := pair.AcquireRead(t.Context(), c, me, 1, lease, true, false)
			require.NoError(t, err)
			reentered, err := lua.Reenter(t.Context(), c,
				lua.Held{Lock: pair.Lock, Owner: me, Read: true}, 2, 3*lease)
			require.NoError(t, err)
			require.True(t, reentered)

			requireLock(t, s, test.name, map[string]string{"mode": "read", me: "2"}, 3*lease)
			requireKeys(t, s, test.name, test.holds+"1", test.holds+"2")
			require.Equal(t, "1", s.DoString(t, "GET", test.holds+"1"))
			require.Equal(t, "1", s.DoString(t, "GET", test.holds+"2"))
			requireTTL(t, s, test.holds+"1", lease)
			requireTTL(t, s, test.holds+"2", 3*lease)

			out, err := pair.ReleaseRead(t.Context(), c, me, 0)
			require.NoError(t, err)
			require.Equal(t, lua.Released{Held: true}, out)
			requireKeys(t, s)
		})
	}
}

func TestReadersShareTheLock(t *testing.T) {
	s, c := start(t)
	read(t, c, me, 1, lease)
	read(t, c, other, 1, 3*lease)
	requireLock(t, s, lock, map[string]string{"mode": "read", me: "1", other: "1"}, 3*lease)
	requireTTL(t, s, holdKey(me, 1), lease)
	requireTTL(t, s, holdKey(other, 1), 3*lease)
}

func TestWriterHasTheLockForItself(t *testing.T) {
	s, c := start(t)
	write(t, c, other, lease)
	for name, acquire := range map[string]func() (*lua.Holder, error){
		"reader": func() (*lua.Holder, error) {
			return pair.AcquireRead(t.Context(), c, me, 1, 3*lease, true, false)
		},
		"writer": func() (*lua.Holder, error) {
			return pair.AcquireWrite(t.Context(), c, me, 1, 3*lease, true)
		},
	} {
		holder, err := acquire()
		require.NoError(t, err, name)
		require.Equal(t, other, holder.Owner, name)
		require.InDelta(t, lease, holder.TTL, float64(5*time.Second), name)
	}
	requireLock(t, s, lock, map[string]string{"mode": "write", other + ":write": "1"}, lease)
	requireKeys(t, s, lock)
}

func TestReaderIsInTheWayOfEveryWriterItselfIncluded(t *testing.T) {
	s, c := start(t)
	read(t, c, me, 1, lease)
	for _, writer := range []string{me, other} {
		holder, err := pair.AcquireWrite(t.Context(), c, writer, 1, 3*lease, true)
		require.NoError(t, err)
		require.Equal(t, me, holder.Owner)
	}
	requireLock(t, s, lock, map[string]string{"mode": "read", me: "1"}, lease)
}

func TestHashLivesAsLongAsTheLongestHoldThatIsLeft(t *testing.T) {
	s, c := start(t)
	sub := subscribe(t, s, "SUBSCRIBE", pairChannel)
	read(t, c, me, 1, 3*lease)
	read(t, c, other, 1, lease)
	out, err := pair.ReleaseRead(t.Context(), c, me, 0)
	require.NoError(t, err)
	require.Equal(t, lua.Released{Held: true}, out)
	requireLock(t, s, lock, map[string]string{"mode": "read", other: "1"}, lease)
	requireKeys(t, s, lock, holdKey(other, 1))
	sub.requireNothing(t)

	_, err = pair.ReleaseRead(t.Context(), c, other, 0)
	require.NoError(t, err)
	requireKeys(t, s)
	sub.requireBytes(t, array("message", pairChannel, "0"))
	sub.requireNothing(t)
}

func TestReleaseOfAReadHoldNeverShortensAnother(t *testing.T) {
	for name, leases := range map[string][2]time.Duration{
		"the longer one is left":  {3 * lease, lease},
		"the shorter one is left": {lease, 3 * lease},
	} {
		t.Run(name, func(t *testing.T) {
			s, c := start(t)
			read(t, c, other, 1, lease)
			read(t, c, me, 1, leases[0])
			_, err := lua.Reenter(t.Context(), c, lua.Held{Lock: pair.Lock, Owner: me, Read: true},
				2, leases[1])
			require.NoError(t, err)
			out, err := pair.ReleaseRead(t.Context(), c, me, 1)
			require.NoError(t, err)
			require.Equal(t, lua.Released{Held: true}, out)
			// Which level had which lease is unknown, so the level that is left has the longest.
			requireLock(t, s, lock, map[string]string{"mode": "read", me: "1", other: "1"}, 3*lease)
			requireTTL(t, s, holdKey(me, 1), 3*lease)
			requireTTL(t, s, holdKey(other, 1), lease)
			requireKeys(t, s, lock, holdKey(me, 1), holdKey(other, 1))
		})
	}
}

func TestReadsAreRenewedForTheirOwnerOnly(t *testing.T) {
	s, c := start(t)
	read(t, c, me, 1, lease)
	_, err := lua.Reenter(t.Context(), c, lua.Held{Lock: pair.Lock, Owner: me, Read: true}, 2,
		5*lease)
	require.NoError(t, err)
	read(t, c, other, 1, lease)
	hold(t, s, "plain", me, "1", lease)
	s.Do(t, "SET", "page", "text")
	held, err := lua.Renew(t.Context(), c, 3*lease, []lua.Held{{lock, me, true},
		{lock, "nobody:1", true}, {"plain", me, true}, {"page", me, true}, {"free", me, true}})
	require.NoError(t, err)
	require.Equal(t, []bool{true, false, false, false, false}, held)
	requireTTL(t, s, holdKey(me, 1), 3*lease)
	requireTTL(t, s, holdKey(me, 2), 5*lease)
	requireTTL(t, s, holdKey(other, 1), lease)
	requireTTL(t, s, lock, 5*lease)
	requireTTL(t, s, "plain", lease)
}

func TestReadWhoseHoldsHaveAllExpiredIsLost(t *testing.T) {
	s, c := start(t)
	read(t, c, other, 1, lease)
	read(t, c, me, 1, lease)
	s.Do(t, "DEL", holdKey(me, 1))
	reentered, err := lua.Reenter(t.Context(), c, lua.Held{Lock: pair.Lock, Owner: me, Read: true},
		2, lease)
	require.NoError(t, err)
	require.False(t, reentered)
	held, err := lua.Renew(t.Context(), c, 3*lease, []lua.Held{{lock, me, true}})
	require.NoError(t, err)
	require.Equal(t, []bool{false}, held)
	requireTTL(t, s, lock, lease)
	for _, number := range []int{1, 0} {
		out, err := pair.ReleaseRead(t.Context(), c, me, number)
		require.NoError(t, err)
		require.False(t, out.Held)
	}
	requireLock(t, s, lock, map[string]string{"mode": "read", other: "1"}, lease)
}

func TestWriteReentryLastsForTheLongerLease(t *testing.T) {
	s, c := start(t)
	write(t, c, me, 2*lease)
	for i, length := range []time.Duration{lease, 3 * lease} {
		reentered, err := lua.Reenter(t.Context(), c,
			lua.Held{Lock: lock, Owner: lua.WriteField(me)}, i+2, length)
		require.NoError(t, err)
		require.True(t, reentered)
		requireLock(t, s, lock,
			map[string]string{"mode": "write", me + ":write": strconv.Itoa(i + 2)},
			max(2*lease, length))
	}
	out, err := pair.ReleaseWrite(t.Context(), c, me, 1, "", 0)
	require.NoError(t, err)
	require.Equal(t, lua.Released{Held: true}, out)
	requireLock(t, s, lock, map[string]string{"mode": "write", me + ":write": "1"}, 3*lease)
}

// A lock that is handed over is not announced, and the waiters knew of the lease before.
func TestWriteLockHandedOverForAShortLeaseIsAnnouncedToWaiters(t *testing.T) {
	for _, passed := range []struct {
		lease time.Duration
		told  string
	}{{lua.MaxNap - time.Millisecond, array("message", pairChannel, "4999")}, {lua.MaxNap, ""}} {
		s, c := start(t)
		write(t, c, me, lease)
		sub := subscribe(t, s, "SUBSCRIBE", pairChannel)
		out, err := pair.ReleaseWrite(t.Context(), c, me, 0, lua.WriteField(other), passed.lease)
		require.NoError(t, err)
		require.Equal(t, lua.Successor, out.To)
		sub.requireBytes(t, passed.told)
		sub.requireNothing(t)
	}
}
