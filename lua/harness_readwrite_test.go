package lua_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/lua"
)

// pair is the read-write lock called lock, without precedence between its sides.
var pair = lua.ReadWrite{Lock: lock}

const pairChannel = "redisson_rwlock:{order:42}"

// holdKey is the key of an owner's read hold of lock.
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

// plantReader writes what other would as a reader with another library, with plain commands. Each lease is that of one hold.
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

type client = rueidis.CoreClient

// preferring is pair with precedence for writers that wait.
var preferring = lua.ReadWrite{Lock: lock, Bound: time.Minute}

const readerKey = "holdfast_rwlock_reader:{order:42}"
