package lua_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/lua"
)

func TestGrantIsReadAsItWasWritten(t *testing.T) {
	for message, want := range map[string]lua.Grant{
		older + " 1790000000000001 0 1 0 order:42": {Lock: "order:42", Owner: older,
			Ticket: 1790000000000001, Streak: lua.Streak{Count: 1}},
		older + " 1790000000000001 9223372036854775807 17 250 order:42": {Lock: "order:42", Owner: older,
			Ticket: 1790000000000001, Fence: 9223372036854775807,
			Streak: lua.Streak{Count: 17, Began: 250}},
		older + " 1 2 0 0  a name with blanks ": {
			Lock: " a name with blanks ", Owner: older, Ticket: 1, Fence: 2},
		older + " +1 2 0 0 order:42": {
			Lock: "order:42", Owner: older, Ticket: 1, Local: true, Fence: 2},
		older + " 1 2 0 0 ": {Owner: older, Ticket: 1, Fence: 2},
	} {
		got, ok := lua.ParseGrant(message)
		require.True(t, ok, "%q", message)
		require.Equal(t, want, got, "%q", message)
	}
}

func TestOtherMessagesAreNoGrants(t *testing.T) {
	for _, message := range []string{"", "0", "1", older, older + " 1", older + " 1 2 3 4",
		older + " 1x 2 3 4 order:42", older + " 1 2x 3 4 order:42", older + " 1 2 3x 4 order:42",
		older + " 1 2 3 4x order:42", older + " 1.5 2 3 4 order:42",
		older + "  1 2 3 4 order:42", older + " 9223372036854775808 2 3 4 order:42"} {
		_, ok := lua.ParseGrant(message)
		require.False(t, ok, "%q", message)
	}
}

func TestClientThatMayRegisterListensOnPairedChannels(t *testing.T) {
	for _, name := range []string{
		"order:42", "{order}:42", "a b", "über", "redisson_lock__channel:x",
	} {
		own := lua.PairedChannels(lua.Channel(name), far)
		require.Equal(
			t,
			[]string{
				lua.Prefix("holdfast_lock_present", name),
				lua.Prefix("holdfast_lock_present", name) + ":" + far,
			},
			own,
		)
		require.Equal(t, own[0]+":announce", lua.AnnouncementChannel(name))
		require.NoError(t, lua.CheckSlots(name, own...))
	}
}

func TestChannelsOfLocksWithoutRegistrationsAreNotPaired(t *testing.T) {
	for _, channel := range []string{
		lua.RWChannel(lock), lua.FairChannel(lock, older), lua.FairChannel("{order}:42", older),
		lua.AnnouncementChannel(lock), present, "", "redisson_lock__channel",
		"a redisson_lock__channel:{order:42}",
	} {
		require.Empty(t, lua.PairedChannels(channel, far), channel)
	}
}

func TestUnexpectedReplyToAnExclusiveLockIsAnUnknownOutcome(t *testing.T) {
	const holder = ":1\r\n+a\r\n:-1\r\n"
	f, c := startFake(t)
	for _, reply := range []string{
		"+OK\r\n", ":7\r\n", "*0\r\n", "*3\r\n" + holder, "*5\r\n" + holder + "+1\r\n+1\r\n",
		"*4\r\n" + holder + "+x\r\n", "*4\r\n" + holder + "$-1\r\n", "*4\r\n+x\r\n+a\r\n:-1\r\n+1\r\n",
		"*4\r\n:1\r\n:1\r\n:-1\r\n+1\r\n", "*4\r\n:1\r\n+a\r\n+x\r\n+1\r\n",
	} {
		f.says(reply)
		for _, e := range []*lua.Exclusive{plain, fenced} {
			if e == fenced && reply == ":7\r\n" {
				continue // a token
			}
			fence, ticket, holder, err := e.Acquire(t.Context(), c, me, lease,
				e.Registration(me, lease))
			requireError(t, err, lua.ClassUnknown, "")
			require.Zero(t, fence)
			require.Zero(t, ticket)
			require.Nil(t, holder)
		}
	}
	f.says("$-1\r\n")
	_, _, holds, err := fenced.Acquire(t.Context(), c, me, lease, "")
	require.Nil(t, holds)
	requireError(t, err, lua.ClassUnknown, "")

	for _, reply := range []string{
		"+OK\r\n", ":7\r\n", "$-1\r\n", "*0\r\n", "*1\r\n:3\r\n", "*3\r\n:7\r\n+\r\n:0\r\n",
		"*3\r\n:3\r\n:1\r\n:0\r\n", "*3\r\n:3\r\n+\r\n+x\r\n", "*3\r\n:4\r\n+\r\n$-1\r\n",
		"*4\r\n:4\r\n+\r\n:1\r\n:1\r\n", "*4\r\n:3\r\n+\r\n:1\r\n+x\r\n",
		"*5\r\n:3\r\n+\r\n:1\r\n:1\r\n:1\r\n",
	} {
		f.says(reply)
		out, err := plain.Release(t.Context(), c, me, 0, toNext(true))
		requireError(t, err, lua.ClassUnknown, "")
		require.Equal(t, lua.Released{}, out, "%q", reply)
	}
}
