//go:build redis

package lua_test

import (
	"os"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/fragments"
	"holdfast/lua"
)

func TestNoTwoRegistrationsHaveOneTicket(t *testing.T) {
	s, c := start(t)
	hold(t, s, lock, other, "1", lease)
	register(t, c, plain, me) // loads the scripts
	_, err := plain.Release(
		t.Context(),
		c,
		me,
		0,
		lua.HandOver{Withdrawn: plain.Registration(me, waiterLease)},
	)
	require.NoError(t, err)
	sources := fragments.Read(os.DirFS("."))
	acquire := s.DoString(t, "SCRIPT", "LOAD", sources["acquire.lua"])
	handOver := s.DoString(t, "SCRIPT", "LOAD", sources["release.lua"])
	registration := plain.Registration(me, waiterLease)
	var commands rueidis.Commands
	for range 100 {
		commands = append(
			commands,
			c.B().
				Evalsha().
				Sha1(acquire).
				Numkeys(2).
				Key(lock, waiters).
				Arg(me, "7000", registration).
				Build(),
			c.B().Evalsha().Sha1(handOver).Numkeys(2).Key(lock, waiters).
				Arg(me, lockChannel, "PUBLISH", "", "0", "0", "", "0", registration).
				Build(),
		)
	}
	last := int64(0)
	for i, reply := range c.DoMulti(t.Context(), commands...) {
		if i%2 == 1 {
			status, err := reply.AsInt64()
			require.NoError(t, err)
			require.EqualValues(t, -1, status)
			continue
		}
		values, err := reply.ToArray()
		require.NoError(t, err)
		ticket, err := values[3].AsInt64()
		require.NoError(t, err)
		require.Greater(t, ticket, last)
		last = ticket
	}
}
