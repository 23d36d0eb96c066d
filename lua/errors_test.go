package lua_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/fakeredis"
	"holdfast/internal/rediserr"
	"holdfast/lua"
)

// says sets the reply to scripts.
func says(server *fakeredis.Server, reply any) {
	for _, command := range []string{"EVALSHA", "EVAL"} {
		server.Handle(command, func([]string) any { return reply })
	}
}

type list = []any

// unexpectedReplies has replies that some calls misread if they did not check. Of a holder, numbers
// may be texts, as Lua's numbers are not exact.
var unexpectedReplies = map[string][]any{
	"": {"OK", list{}, list{"a", "b"}, list{1, list{1}}, list{nil, nil}, -5,
		list{1, 2, 3, 4, 5, 6, 7}},
	"acquire.lua": {7, list{1, "a", -1}, list{1, "a", -1, "1", "1"}, list{1, "a", -1, "x"},
		list{1, "a", -1, nil}, list{"x", "a", -1, "1"}, list{1, 1, -1, "1"}, list{1, "a", "x", "1"}},
	"fenced_acquire.lua": {nil, list{1, "a", -1}, list{1, "a", -1, "x"}, list{1, 1, -1, "1"}},
	"batch_acquire.lua": {1, list{0}, list{0, 1, 1}, list{"a", nil}, list{-1, nil}, list{2, nil},
		list{0, 1}, list{0, list{1, "a"}}, list{0, list{"a", "a", 1}}},
	"quorum_acquire.lua": {2, list{1}, list{0, 0}, list{-5, 0}, list{"a", 0}, list{5, 7}, list{5, "a"},
		list{1, 2, 3}, list{1, "a", 3, 4}},
	"reenter.lua": {nil, 7},
	"renew.lua":   {nil, 7, list{1, 1}},

	"once_begin.lua": {nil, 1}, "once_store.lua": {nil, 2},
	"release.lua": {7, nil, list{3}, list{7, "", 0}, list{3, 1, 0}, list{3, "", "x"}, list{4, "", nil},
		list{4, "", 1, 1}, list{3, "", 1, "x"}, list{3, "", 1, 1, 1}},
	"batch_release.lua": {nil, 1, list{list{1, ""}, list{1, ""}}, list{7}, list{nil}, list{list{1}},
		list{list{"a", ""}}, list{list{1, list{}}}},
	"inspect.lua": {nil, 1, list{1, list{"a"}}},
}

// The script did run, so its outcome is unknown.
func TestUnexpectedReplyIsAnUnknownOutcome(t *testing.T) {
	server, c := fakeredis.Start(t)
	for _, k := range calls {
		for of, replies := range unexpectedReplies {
			if of != "" && of != k.script {
				continue
			}
			for _, reply := range replies {
				_, isList := reply.(list)
				_, isText := reply.(string)
				if k.script == "identity.lua" && isList || // any texts will do
					strings.HasPrefix(k.script, "once") && isText || // the value of the key
					k.script == "fenced_acquire.lua" && reply == any(-5) { // a token
					continue
				}
				says(server, reply)
				got := k.do(t.Context(), c)
				e := requireError(t, errorOf(got), rediserr.ClassUnknown, "")
				require.Regexp(t, "unexpected reply|is not a number", e.Message, "%s: %v", k.script, reply)
				require.NotContains(t, outlined(got), "true", "%s: %v", k.script, reply)
				require.Nil(t, holderOf(got), "%s: %v", k.script, reply)
			}
		}
		says(server, list{errors.New("OOM command not allowed"), ""})
		if strings.Contains(k.script, "release") && k.script != "batch_release.lua" {
			requireError(t, errorOf(k.do(t.Context(), c)), rediserr.ClassPermanent, "OOM")
		}
		breaks, broken := fakeredis.Start(t)
		breaks.Handle("EVALSHA", func([]string) any { breaks.Disconnect(); return nil })
		err := errorOf(k.do(t.Context(), broken))
		require.Error(t, err, k.script)
		require.Equal(t, rediserr.ClassUnknown, rediserr.ClassOf(err), k.script)
	}
}

func TestUnexpectedReplyKeepsItsCause(t *testing.T) {
	server, c := fakeredis.Start(t)
	says(server, "OK")
	_, err := lua.Inspect(t.Context(), c, lock)
	var e *rediserr.Error
	require.ErrorAs(t, err, &e)
	require.True(t, rueidis.IsParseErr(e.Unwrap()))
	require.ErrorIs(t, rediserr.Classify(rueidis.Nil), rueidis.Nil)
}

func TestRefusalBeginsWithItsCodeOnEveryVersion(t *testing.T) {
	const (
		channel = "The user executing the script can't publish to the channel mentioned in the command"
		command = "The user executing the script can't run this command or subcommand"
		acl     = "ACL failure in script: User app has no permissions to access the 'c' channel"
	)
	server, c := fakeredis.Start(t)
	for text, refusal := range map[string]string{
		"":                             "",
		"@user_script: 38: " + channel: "NOPERM @user_script: 38: " + channel,
		"ERR " + command:               "NOPERM " + command,
		"ERR " + acl:                   "NOPERM " + acl,
		"NOPERM " + acl:                "NOPERM " + acl,
		"ERR Unknown Redis command called from script": "NOCOMMAND " +
			"Unknown Redis command called from script",
	} {
		says(server, list{1, text})
		out, err := unlock(t.Context(), c, me, 0)
		require.NoError(t, err)
		require.Equal(t, lua.Released{Held: true, Refusal: refusal}, out)
	}
}

// The replies about others count.
func TestErrorOfOneReleaseIsThatOfItsLockOnly(t *testing.T) {
	server, c := fakeredis.Start(t)
	for message, code := range map[string]string{
		"@user_script: 18: -READONLY You can't write against a read only replica.": "READONLY",
		"WRONGTYPE Operation against a key holding the wrong kind of value":        "WRONGTYPE",
		"ERR The user executing the script can't access at least one of the keys " +
			"mentioned in the command": "NOPERM",
	} {
		says(server, list{errors.New(message), list{1, "NOPERM no channel"}})
		parts := releaseBatch(t, c, releaseOf(north, 0), releaseOf(south, 0))
		requireError(t, parts[0].Err, rediserr.ClassPermanent, code)
		require.Equal(t,
			lua.BatchReleased{Released: lua.Released{Held: true, Refusal: "NOPERM no channel"}}, parts[1])
	}
}
