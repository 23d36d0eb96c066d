//go:build redis

package lua_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/lua"
)

func TestRefusedVoteLeavesTheNodeAsItWas(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(*testing.T, *redistest.Server)
		delay   lua.Delay
		code    string
	}{
		"another type":         {command("RPUSH", lock, "a"), undelayed, "WRONGTYPE"},
		"no memory":            {fill, undelayed, "OOM"},
		"no memory, epoch":     {fill, lua.Delay{For: time.Hour, Epoch: true}, "OOM"},
		"no expiry":            {user("-pexpire"), undelayed, "NOPERM"},
		"no clock":             {user("-time"), lua.Delay{For: time.Hour, Epoch: true}, "NOPERM"},
		"no read of the epoch": {user("-get"), lua.Delay{For: time.Hour, Epoch: true}, "NOPERM"},
		"no epoch": {
			user("resetkeys", "~"+lock), lua.Delay{For: time.Hour, Epoch: true}, "NOPERM",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, c := startAs(t)
			test.prepare(t, s)
			keys := s.DoStrings(t, "KEYS", "*")
			v, err := lua.AcquireVote(t.Context(), c, lock, me, lease, test.delay)
			requireError(t, err, lua.ClassPermanent, test.code)
			require.Equal(t, lua.Vote{}, v)
			require.Equal(t, keys, s.DoStrings(t, "KEYS", "*"))
		})
	}
}

func TestVoteWithoutADelayNeedsNeitherInfoNorTheEpoch(t *testing.T) {
	_, c := startAs(t, "-info", "-time", "-get", "-set", "resetkeys", "~"+lock)
	require.True(t, vote(t, c, me, undelayed).Granted)
}
