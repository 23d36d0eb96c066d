//go:build redis

package lua_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/lua"
)

func TestFencedAcquireWithoutItsCounterTakesNothingAndGivesAdvice(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(*testing.T, *redistest.Server)
		code    string
		advice  string
	}{
		"a text": {func(t *testing.T, s *redistest.Server) { s.Do(t, "SET", counter, "a page") },
			"ERR", counter},
		"at its end": {func(t *testing.T, s *redistest.Server) {
			s.Do(t, "SET", counter, "9223372036854775807")
		}, "ERR", counter},
		"another type": {func(t *testing.T, s *redistest.Server) { s.Do(t, "RPUSH", counter, "a") },
			"WRONGTYPE", counter},
		"out of memory": {func(t *testing.T, s *redistest.Server) {
			s.Do(t, "CONFIG", "SET", "maxmemory", "1")
		}, "OOM", "maxmemory"},
		"forbidden": {func(t *testing.T, s *redistest.Server) {
			s.Do(t, "ACL", "SETUSER", "app", "resetkeys", "~"+lock)
		}, "NOPERM", "ACL"},
		"forbidden to count": {func(t *testing.T, s *redistest.Server) {
			s.Do(t, "ACL", "SETUSER", "app", "-incr")
		}, "NOPERM", "ACL"},
	} {
		t.Run(name, func(t *testing.T) {
			s, client := startAs(t)
			c.prepare(t, s)
			_, holder, err := lockFenced(t.Context(), client, me, lease)
			require.Nil(t, holder)
			e := requireError(t, err, lua.ClassPermanent, c.code)
			require.Contains(t, e.Advice, c.advice)
			requireFree(t, s, lock)
		})
	}
}

func TestFencedLockThatMayNotExpireIsNotTaken(t *testing.T) {
	s, c := startAs(t, "-pexpire")
	_, _, err := lockFenced(t.Context(), c, me, lease)
	requireError(t, err, lua.ClassPermanent, "NOPERM")
	requireFree(t, s, lock)
}
