package lua_test

import (
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/lua"
)

func TestUnexpectedReplyIsAnUnknownOutcome(t *testing.T) {
	const odd = "*2\r\n+a\r\n+b\r\n" // texts where numbers belong
	f, c := startFake(t)
	for _, o := range operations {
		replies := map[string]string{
			"text":           "+OK\r\n",
			"texts":          odd,
			"list too long":  "*3\r\n:1\r\n:2\r\n:3\r\n",
			"map":            "%1\r\n+a\r\n+b\r\n",
			"second in list": "*2\r\n:1\r\n*1\r\n:1\r\n", // neither a text nor a list of pairs
			"nil in list":    "*2\r\n$-1\r\n$-1\r\n",
			"nil":            "$-1\r\n",
			"number":         ":1\r\n",
			"another number": ":7\r\n",
			"null":           "_\r\n",
		}
		switch o.name {
		case "acquire":
			delete(replies, "nil")
			delete(replies, "null")
		case "reenter", "release", "release one level", "force unlock":
			delete(replies, "number")
		case "inspect":
			delete(replies, "second in list") // see below
		}
		for name, reply := range replies {
			t.Run(o.name+" gets "+name, func(t *testing.T) {
				f.says(reply)
				e := requireError(t, o.run(t.Context(), c), lua.ClassUnknown, "")
				require.Contains(t, e.Message, "unexpected reply")
			})
		}
	}
	t.Run("inspect gets a field without a value", func(t *testing.T) {
		f.says("*2\r\n:1\r\n*1\r\n+a\r\n")
		_, err := lua.Inspect(t.Context(), c, lock)
		require.Contains(t, requireError(t, err, lua.ClassUnknown, "").Message, "unexpected reply")
	})
	t.Run("renew gets too many values", func(t *testing.T) {
		f.says("*2\r\n:1\r\n:1\r\n")
		_, err := lua.Renew(t.Context(), c, lease, []lua.Held{{Lock: lock, Owner: me}})
		require.ErrorContains(t, err, "2 values instead of 1")
	})
}

func TestUnexpectedReplyKeepsItsCause(t *testing.T) {
	f, c := startFake(t)
	f.says("+OK\r\n")
	_, err := lua.Inspect(t.Context(), c, lock)
	var e *lua.Error
	require.ErrorAs(t, err, &e)
	require.True(t, rueidis.IsParseErr(e.Unwrap()))
	require.ErrorIs(t, lua.Classify(rueidis.Nil), rueidis.Nil)
}

func TestErrorReplyInsideAListIsReturned(t *testing.T) {
	f, c := startFake(t)
	f.says("*2\r\n-OOM command not allowed\r\n+\r\n")
	_, err := unlock(t.Context(), c, lock, me, 0)
	requireError(t, err, lua.ClassPermanent, "OOM")
}

func TestRefusalBeginsWithItsCodeOnEveryVersion(t *testing.T) {
	f, c := startFake(t)
	for _, test := range []struct{ text, refusal string }{
		{"", ""},
		{"@user_script: 38: The user executing the script can't publish to the channel " +
			"mentioned in the command",
			"NOPERM @user_script: 38: The user executing the script can't publish to the channel " +
				"mentioned in the command"},
		{"ERR The user executing the script can't run this command or subcommand",
			"NOPERM The user executing the script can't run this command or subcommand"},
		{"ERR ACL failure in script: User app has no permissions to access the 'c' channel",
			"NOPERM ACL failure in script: User app has no permissions to access the 'c' channel"},
		{"NOPERM ACL failure in script: User app has no permissions to access the 'c' channel",
			"NOPERM ACL failure in script: User app has no permissions to access the 'c' channel"},
		{"ERR Unknown Redis command called from script",
			"NOCOMMAND Unknown Redis command called from script"},
	} {
		f.says("*2\r\n:1\r\n+" + test.text + "\r\n")
		out, err := unlock(t.Context(), c, lock, me, 0)
		require.NoError(t, err)
		require.Equal(t, lua.Released{Held: true, Refusal: test.refusal}, out)
	}
}
