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
	lock  = "order:42"
	me    = "3f0c1f1e-6a4e-4b63-9d0e-0a4c6f0b7a11:1"
	other = "b1a7c9d2-58b0-4c0e-8f3b-6b1f2f9d1c55:7"
	lease = 30 * time.Second
)

// How long a test waits for what happens soon, and how often it looks.
const (
	eventually = 10 * time.Second
	poll       = time.Millisecond
)

// announcement is what the reentrant lock called lock announces.
var announcement = lua.Announcement{Channel: "redisson_lock__channel:{order:42}", Message: lua.Unlocked}

// start returns a server and a client of it.
func start(tb testing.TB, opts ...redistest.Option) (*redistest.Server, rueidis.Client) {
	tb.Helper()
	s := redistest.Start(tb, opts...)
	return s, s.Client(tb)
}

// hold writes a lock with plain commands.
func hold(tb testing.TB, s *redistest.Server, key, owner, count string, left time.Duration) {
	tb.Helper()
	s.Do(tb, "HSET", key, owner, count)
	if left != lua.NoExpiry {
		s.Do(tb, "PEXPIRE", key, ms(left))
	}
}

func ms(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// requireLock asserts the whole hash of a lock and, within 5 s, what is left of its lease.
func requireLock(tb testing.TB, s *redistest.Server, key string, counts map[string]string, left time.Duration) {
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

// requireError asserts what an error of the package says of itself, and that it has advice.
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

// counter is the key that has the number of the last acquisition of the fenced lock called lock.
const counter = "redisson_lock_token:{order:42}"

func has(s *redistest.Server, key string) bool {
	reply, err := s.Call("EXISTS", key)
	return err != nil || reply == int64(1)
}

// fill leaves a server no memory for another byte.
func fill(t *testing.T, s *redistest.Server) {
	t.Helper()
	s.Do(t, "CONFIG", "SET", "maxmemory-policy", "noeviction")
	s.Do(t, "CONFIG", "SET", "maxmemory", "1")
	_, err := s.Call("SET", "filler", "x")
	require.ErrorContains(t, err, "OOM")
}

// startAs returns a server and a client whose user may do everything but for the given ACL rules.
func startAs(t *testing.T, rules ...string) (*redistest.Server, rueidis.Client) {
	t.Helper()
	s := redistest.Start(t)
	s.Do(t, append([]string{"ACL", "SETUSER", "app", "on", ">secret", "~*", "&*", "+@all"}, rules...)...)
	return s, s.Client(t, func(o *rueidis.ClientOption) { o.Username, o.Password = "app", "secret" })
}

// operations has each script, release once per outcome.
var operations = []operation{
	{"acquire", "", "1", func(ctx context.Context, c rueidis.Client) error {
		_, err := lua.Acquire(ctx, c, lock, me, 1, lease)
		return err
	}},
	{"reenter", "1", "2", func(ctx context.Context, c rueidis.Client) error {
		_, err := lua.Reenter(ctx, c, lock, me, 2, lease)
		return err
	}},
	{"release one level", "2", "1", func(ctx context.Context, c rueidis.Client) error {
		_, err := lua.Release(ctx, c, lock, me, 1, announcement)
		return err
	}},
	{"release", "1", "", func(ctx context.Context, c rueidis.Client) error {
		_, err := lua.Release(ctx, c, lock, me, 0, announcement)
		return err
	}},
	{"renew", "1", "1", func(ctx context.Context, c rueidis.Client) error {
		_, err := lua.Renew(ctx, c, lease, []lua.Claim{{lock, me}})
		return err
	}},
	{"force unlock", "1", "", func(ctx context.Context, c rueidis.Client) error {
		_, err := lua.ForceUnlock(ctx, c, lock, announcement)
		return err
	}},
	{"inspect", "1", "1", func(ctx context.Context, c rueidis.Client) error {
		_, err := lua.Inspect(ctx, c, lock)
		return err
	}},
}

// unlocked are the bytes of the announcement as a subscriber of a RESP2 connection gets them.
const unlocked = "*3\r\n$7\r\nmessage\r\n$33\r\nredisson_lock__channel:{order:42}\r\n$1\r\n0\r\n"
