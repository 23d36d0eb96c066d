package lua_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/lua"
)

const (
	lock = "order:42"
	// An owner of this library has a number of 19 digits, and other is one of Redisson.
	me    = "3f0c1f1e-6a4e-4b63-9d0e-0a4c6f0b7a11:4611686018427387905"
	other = "b1a7c9d2-58b0-4c0e-8f3b-6b1f2f9d1c55:7"
	lease = 30 * time.Second
)

// How long a test waits for what happens soon, and how often it checks.
const (
	eventually = 10 * time.Second
	poll       = time.Millisecond
)

// lockChannel is where the reentrant lock called lock is announced.
const lockChannel = "redisson_lock__channel:{order:42}"

// start returns a server and a client of it.
func start(tb testing.TB, opts ...redistest.Option) (*redistest.Server, rueidis.Client) {
	tb.Helper()
	s := redistest.Start(tb, opts...)
	return s, s.Client(tb)
}

// lockPlain takes a plain lock, or returns the holder in the way.
func lockPlain(
	ctx context.Context, c rueidis.CoreClient, lock, owner string, lease time.Duration,
) (*lua.Holder, error) {
	_, _, holder, err := lua.NewExclusive(lock, false).Acquire(ctx, c, owner, lease, "")
	return holder, err
}

// lockFenced takes the lock as a fenced one, or returns the holder in the way.
func lockFenced(ctx context.Context, c rueidis.CoreClient, owner string, lease time.Duration,
) (int64, *lua.Holder, error) {
	fence, _, holder, err := lua.NewExclusive(lock, true).Acquire(ctx, c, owner, lease, "")
	return fence, holder, err
}

// unlock releases down to so many levels of a plain or fenced lock, without hand-over.
func unlock(
	ctx context.Context, c rueidis.CoreClient, lock, owner string, count int,
) (lua.Released, error) {
	return lua.NewExclusive(lock, false).Release(ctx, c, owner, count, lua.HandOver{})
}

// hold writes a held lock with plain commands.
func hold(tb testing.TB, s *redistest.Server, key, owner, count string, left time.Duration) {
	tb.Helper()
	s.Do(tb, "HSET", key, owner, count)
	if left != lua.NoExpiry {
		s.Do(tb, "PEXPIRE", key, ms(left))
	}
}

func ms(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// requireLock asserts the whole hash of a lock and, within 5 s, the rest of its lease.
func requireLock(
	tb testing.TB,
	s *redistest.Server,
	key string,
	counts map[string]string,
	left time.Duration,
) {
	tb.Helper()
	require.Equal(tb, counts, s.DoMap(tb, "HGETALL", key))
	requireTTL(tb, s, key, left)
}

func requireTTL(tb testing.TB, s *redistest.Server, key string, left time.Duration) {
	tb.Helper()
	pttl := s.DoInt(tb, "PTTL", key)
	if left == lua.NoExpiry {
		require.EqualValues(tb, -1, pttl)
		return
	}
	require.LessOrEqual(tb, pttl, left.Milliseconds())
	require.Greater(tb, pttl, (left - 5*time.Second).Milliseconds())
}

func requireFree(tb testing.TB, s *redistest.Server, key string) {
	tb.Helper()
	require.Zero(tb, s.DoInt(tb, "EXISTS", key))
}

// requireError asserts the class and code of an error of the package, and that it has advice.
func requireError(tb testing.TB, err error, class lua.Class, code string) lua.Error {
	tb.Helper()
	var e *lua.Error
	require.ErrorAs(tb, err, &e)
	require.Equal(tb, class, e.Class, "%+v", e)
	require.Equal(tb, code, e.Code, "%+v", e)
	require.NotEmpty(tb, e.Message)
	require.NotEmpty(tb, e.Advice, "%+v", e)
	require.Contains(tb, err.Error(), e.Advice)
	require.Equal(tb, class, lua.ClassOf(err))
	return *e
}
