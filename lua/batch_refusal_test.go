//go:build redis

package lua_test

import (
	"maps"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/lua"
)

// notOnSouth returns an ACL rule that allows everything on the locks but this command on the last.
// Such a rule, new in Redis 7, is met only after something was written; any other refuses the
// script or its first write.
func notOnSouth(command string) string { return "(+@all -" + command + " ~account:* &*)" }

// rulesPerKey reports whether the server knows such rules, as Redis 7 and Valkey do.
func rulesPerKey(t *testing.T, s *redistest.Server) bool {
	t.Helper()
	_, err := s.Call("ACL", "SETUSER", "probe", "%R~key", notOnSouth("get"))
	if err == nil {
		return true
	}
	require.ErrorContains(t, err, "Syntax error")
	require.Contains(t, s.DoString(t, "INFO", "server"), "redis_version:6.")
	return false
}

// startNotOnSouth is startAs for a user who may not execute the command on south. On an old server
// the user may do nothing at all there.
func startNotOnSouth(t *testing.T, command string) (*redistest.Server, rueidis.Client) {
	t.Helper()
	s, c := startAs(t, "resetkeys", "~"+north, "~"+middle)
	if rulesPerKey(t, s) {
		user(notOnSouth(command))(t, s)
	}
	return s, c
}

// command returns a function that executes a command on a server.
func command(words ...string) func(*testing.T, *redistest.Server) {
	return func(t *testing.T, s *redistest.Server) {
		t.Helper()
		s.Do(t, words...)
	}
}

// user returns a function that changes the user of startAs.
func user(rules ...string) func(*testing.T, *redistest.Server) {
	return command(append([]string{"ACL", "SETUSER", "app"}, rules...)...)
}

func TestBatchTakesNothingWhenTheServerRefusesOneKey(t *testing.T) {
	type refusal struct {
		prepare func(*testing.T, *redistest.Server)
		code    string
	}
	refusals := map[string]refusal{
		"another type":             {command("SET", south, "a page"), "WRONGTYPE"},
		"no memory":                {fill, "OOM"},
		"a key that the ACL hides": {user("resetkeys", "~"+north, "~"+middle), "NOPERM"},
		"no write":                 {user("-hset"), "NOPERM"},
		"no expiry":                {user("-pexpire"), "NOPERM"},
		"no expiry, no DEL":        {user("-pexpire", "-del"), "NOPERM"},
		"no read":                  {user("-hrandfield"), "NOPERM"},
		"no replicas": {
			command("CONFIG", "SET", "min-replicas-to-write", "1"), "NOREPLICAS",
		},
		"no master": {command("REPLICAOF", "127.0.0.1", "1"), "READONLY"},
	}
	if rulesPerKey(t, redistest.Start(t)) {
		maps.Copy(refusals, map[string]refusal{
			"a key that the ACL lets only be read": {
				user("resetkeys", "~"+north, "~"+middle, "%R~"+south),
				"NOPERM",
			},
			"a key that the ACL lets a script have, and not write": {
				user("resetkeys", "~"+north, "~"+middle, notOnSouth("hset")), "NOPERM"},
			"a key that the ACL does not let expire": {
				user("resetkeys", "~"+north, "~"+middle, notOnSouth("pexpire")), "NOPERM"},
		})
	}
	for name, test := range refusals {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, order := range [][]string{
				{north, middle, south}, {south, middle, north}, {middle, south, north},
			} {
				s, c := startAs(t)
				// The lease is longer than wanted: a refusal after this lock's count is not about
				// its own lease.
				hold(t, s, middle, me, "1", 5*lease)
				test.prepare(t, s)
				index, holder, err := lua.AcquireBatch(t.Context(), c, lease,
					batchInOrder(order...))
				require.Equal(t, -1, index)
				require.Nil(t, holder)
				class := lua.ClassPermanent
				if test.code == "NOREPLICAS" {
					class = lua.ClassTemporary
				}
				requireError(t, err, class, test.code)
				requireFree(t, s, north)
				requireLock(t, s, middle, map[string]string{me: "1"}, 5*lease)
				if test.code == "WRONGTYPE" {
					require.Equal(t, "a page", s.DoString(t, "GET", south))
				} else {
					requireFree(t, s, south)
				}
			}
		})
	}
}

// The leases are written after all counts, so a refusal leaves none that was extended.
func TestRefusedBatchExtendsNoLease(t *testing.T) {
	s, c := startNotOnSouth(t, "hset")
	hold(t, s, middle, me, "1", lease)
	_, _, err := lua.AcquireBatch(t.Context(), c, 3*lease, batchInOrder(middle, north, south))
	requireError(t, err, lua.ClassPermanent, "NOPERM")
	requireFree(t, s, north)
	requireLock(t, s, middle, map[string]string{me: "1"}, lease)
}

func TestServerOutOfMemoryStillSaysWhichLockIsInTheWay(t *testing.T) {
	s, c := start(t)
	hold(t, s, south, other, "1", lease)
	fill(t, s)
	index, holder, err := lua.AcquireBatch(t.Context(), c, lease, []lua.BatchPart{
		{Lock: north, Owner: me, Count: 1}, {Lock: south, Owner: me, Count: 1}})
	require.NoError(t, err)
	require.Equal(t, 1, index)
	require.NotNil(t, holder)
	require.Equal(t, other, holder.Owner)
}

// A batch needs no permission beyond those listed for every lock.
func TestPermissionsOfAPlainLockAreEnoughForABatch(t *testing.T) {
	s, c := startAs(t, "-@all", "+evalsha", "+eval", "+pttl", "+hexists", "+hset",
		"+hdel", "+hlen", "+hrandfield", "+pexpire", "+del", "+publish", "+ping", "+hello", "+client")
	hold(t, s, middle, me, "1", lease)
	requireBatch(t, c, lease, batchInOrder(north, middle, south)...)
	index, holder, err := lua.AcquireBatch(t.Context(), c, lease,
		[]lua.BatchPart{{Lock: north, Owner: other, Count: 1}})
	require.NoError(t, err)
	require.Zero(t, index)
	require.NotNil(t, holder)
	require.Equal(t, me, holder.Owner)
	parts, err := lua.ReleaseBatch(t.Context(), c, lua.Classic, []lua.BatchPart{
		releaseOf(north, me, 0), releaseOf(middle, me, 1)})
	require.NoError(t, err)
	for _, part := range parts {
		require.Equal(t, lua.BatchReleased{Released: lua.Released{Held: true}}, part)
	}
	requireFree(t, s, north)
	requireLock(t, s, middle, map[string]string{me: "1"}, lease)
}
