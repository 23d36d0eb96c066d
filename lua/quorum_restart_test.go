//go:build redis

package lua_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/lua"
)

// requireDelayed asserts that a vote was delayed for the restart, until the uptime exceeds the
// delay by a second.
func requireDelayed(t *testing.T, want time.Duration, before, after time.Duration, v lua.Vote) {
	t.Helper()
	require.False(t, v.Granted)
	require.Nil(t, v.Holder)
	require.False(t, v.Emptied)
	require.LessOrEqual(t, v.Delayed, want+time.Second-before)
	require.GreaterOrEqual(t, v.Delayed, want+time.Second-after)
}

func TestYoungNodeIsNotCountedUntilItRanForTheDelayAndASecond(t *testing.T) {
	for _, d := range []lua.Delay{{For: time.Hour}, {For: time.Hour, Epoch: true}} {
		s, c := start(t)
		before := uptime(t, s)
		v := vote(t, c, me, d)
		requireDelayed(t, time.Hour, before, uptime(t, s), v)
		requireFree(t, s, lock)
	}
}

// The uptime is in whole seconds and may be one too many, so no node counts before it says 2.
func TestNodeIsCountedWhenItRanForTheDelayAndASecond(t *testing.T) {
	t.Parallel()
	s, c := start(t)
	require.Eventually(t, func() bool {
		before := uptime(t, s)
		v := vote(t, c, me, lua.Delay{For: time.Millisecond})
		after := uptime(t, s)
		if v.Granted {
			require.GreaterOrEqual(t, after, 2*time.Second)
			return true
		}
		requireFree(t, s, lock)
		requireDelayed(t, time.Millisecond, before, after, v)
		return false
	}, eventually, 20*time.Millisecond)
	requireLock(t, s, lock, map[string]string{me: "1"}, lease)
	require.True(t, vote(t, c, me, lua.Delay{For: time.Millisecond}).Granted,
		"again, as after a lost reply")
	requireLock(t, s, lock, map[string]string{me: "1"}, lease)
}

func TestRestartedNodeIsNotCountedThoughItRanForLongBefore(t *testing.T) {
	t.Parallel()
	s, c := start(t)
	d := lua.Delay{For: time.Millisecond}
	require.Eventually(t, func() bool { return vote(t, c, me, d).Granted }, eventually,
		20*time.Millisecond)
	s.Restart(t)
	c = s.Client(t)
	before := uptime(t, s)
	v := vote(t, c, other, d) // before the restart it would have been refused
	requireDelayed(t, time.Millisecond, before, uptime(t, s), v)
	requireFree(t, s, lock)
}

func TestHoldThatSurvivedARestartStillExcludesAndIsRenewedAndReleased(t *testing.T) {
	s, _ := start(t, redistest.WithAppendOnly())
	hold(t, s, lock, me, "1", lease)
	s.Restart(t)
	c := s.Client(t)
	v := vote(t, c, other, lua.Delay{For: time.Hour, Epoch: true})
	require.NotNil(t, v.Holder)
	require.Equal(t, me, v.Holder.Owner)
	held, err := lua.Renew(t.Context(), c, 3*lease, []lua.Held{{Lock: lock, Owner: me}})
	require.NoError(t, err)
	require.Equal(t, []bool{true}, held)
	out, err := unlock(t.Context(), c, lock, me, 0)
	require.NoError(t, err)
	require.True(t, out.Held)
	requireFree(t, s, lock)
}

// A server that lost its last second has the hold of an owner that released it in that second. When
// that owner returns, another may hold the lock on the other nodes.
func TestHoldThatARestartBroughtBackIsNotAVoteForItsOwner(t *testing.T) {
	s, _ := start(t, redistest.WithAppendOnly())
	hold(t, s, lock, me, "1", lease)
	s.Restart(t)
	before := uptime(t, s)
	v := vote(t, s.Client(t), me, lua.Delay{For: time.Hour})
	requireDelayed(t, time.Hour, before, uptime(t, s), v)
	requireLock(t, s, lock, map[string]string{me: "1"}, lease)
}

func TestNodeThatHidesItsUptimeIsAnErrorWithAdvice(t *testing.T) {
	for name, rules := range map[string][]string{
		"INFO": {"-info"}, "the dangerous": {"-@dangerous", "+client"},
	} {
		t.Run("without "+name, func(t *testing.T) {
			s, c := startAs(t, rules...)
			for _, d := range []lua.Delay{{For: 1}, {For: time.Hour, Epoch: true}} {
				v, err := lua.AcquireVote(t.Context(), c, lock, me, lease, d)
				require.Equal(t, lua.Vote{}, v)
				e := requireError(t, err, lua.ClassPermanent, "NOINFO")
				require.Regexp(t, "can't run this command|no permissions to run the 'info' command",
					e.Message, "the server's reason")
				require.Contains(t, e.Advice, "+info")
				require.Contains(t, e.Advice, "redlock.Options.FsyncAlways")
				require.Zero(t, s.DoInt(t, "DBSIZE"))
			}
		})
	}
	t.Run("only a section allowed", func(t *testing.T) {
		_, c := startAs(t, "-info", "+info|server")
		require.Positive(t, vote(t, c, me, lua.Delay{For: time.Hour}).Delayed)
	})
	t.Run("no such section", func(t *testing.T) {
		c, disconnect := connect()
		defer disconnect()
		_, err := lua.AcquireVote(t.Context(), c, lock, me, lease, lua.Delay{For: time.Hour})
		requireError(t, err, lua.ClassPermanent, "NOINFO")
	})
}

// Whatever reason a server of some version gives, the advice is about INFO.
func TestOwnCodesPrecedeTheServersReason(t *testing.T) {
	f, c := startFake(t)
	for _, code := range []string{"NOINFO", "NOEPOCH"} {
		for _, reason := range []string{
			"@user_script: 21: The user executing the script can't run this command or subcommand", // 6.2
			"ERR The user executing the script can't run this command or subcommand",               // 7.0
			"NOPERM ACL failure in script: User app has no permissions to run the 'info' command",  // 8
			"@user_script: 21: Unknown Redis command called from Lua script",
			"ERR unknown command 'INFO'",
			"WRONGTYPE Operation against a key holding the wrong kind of value",
		} {
			f.refuses(code + " " + reason)
			_, err := lua.AcquireVote(t.Context(), c, lock, me, lease, lua.Delay{For: time.Hour})
			require.Contains(t, requireError(t, err, lua.ClassPermanent, code).Message, reason)
		}
	}
}
