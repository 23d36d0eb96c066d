package lua_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/lua"
)

func TestUnexpectedReplyToABatchAcquireIsAnUnknownOutcome(t *testing.T) {
	f, c := startFake(t)
	for _, reply := range []string{
		"+OK\r\n", ":1\r\n", "*0\r\n", "*1\r\n:0\r\n", "*3\r\n:0\r\n:1\r\n:1\r\n",
		"*2\r\n+a\r\n$-1\r\n", "*2\r\n:-1\r\n$-1\r\n",
		"*2\r\n:2\r\n$-1\r\n", "*2\r\n:0\r\n:1\r\n", "*2\r\n:0\r\n*2\r\n:1\r\n+a\r\n",
		"*2\r\n:0\r\n*3\r\n+a\r\n+a\r\n:1\r\n",
	} {
		f.says(reply)
		index, holder, err := lua.AcquireBatch(t.Context(), c, lease, batchInOrder(north, middle))
		require.Contains(t, requireError(t, err, lua.ClassUnknown, "").Message, "unexpected reply",
			"%q", reply)
		require.Equal(t, -1, index)
		require.Nil(t, holder)
	}
}

func TestUnexpectedReplyToABatchReleaseIsAnUnknownOutcome(t *testing.T) {
	f, c := startFake(t)
	for _, reply := range []string{"+OK\r\n", "$-1\r\n", "*0\r\n", "*1\r\n*2\r\n:1\r\n+\r\n"} {
		f.says(reply)
		parts, err := lua.ReleaseBatch(t.Context(), c, lua.Classic,
			[]lua.BatchPart{releaseOf(north, me, 0), releaseOf(south, me, 0)})
		require.Contains(t, requireError(t, err, lua.ClassUnknown, "").Message, "unexpected reply",
			"%q", reply)
		require.Nil(t, parts)
	}
	for _, part := range []string{
		":7\r\n", "$-1\r\n", "*1\r\n:1\r\n", "*2\r\n+a\r\n+\r\n", "*2\r\n:1\r\n*0\r\n",
	} {
		f.says("*2\r\n" + part + "*2\r\n:1\r\n+\r\n")
		parts := releaseBatch(t, c, releaseOf(north, me, 0), releaseOf(south, me, 0))
		require.Contains(t, requireError(t, parts[0].Err, lua.ClassUnknown, "").Message,
			"unexpected reply", "%q", part)
		require.Equal(t, gone, parts[1])
	}
}

// Before Redis 7 the code of an error inside a script is hidden, also in a list.
func TestRefusalOfEachReleaseIsClassifiedOnEveryVersion(t *testing.T) {
	f, c := startFake(t)
	for message, code := range map[string]string{
		"@user_script: 18: -READONLY You can't write against a read only replica.": "READONLY",
		"READONLY You can't write against a read only replica.":                    "READONLY",
		"WRONGTYPE Operation against a key holding the wrong kind of value":        "WRONGTYPE",
		"MISCONF Redis is configured to save RDB snapshots, but it's currently unable " +
			"to persist to disk.": "MISCONF",
		"@user_script: 18: The user executing the script can't run this command or subcommand": "NOPERM",
		"NOPERM ACL failure in script: User app has no permissions to run the 'hdel' command":  "NOPERM",
		"ERR The user executing the script can't access at least one of the keys " +
			"mentioned in the command": "NOPERM",
	} {
		f.says("*2\r\n-" + message + "\r\n*2\r\n:1\r\n+NOPERM no channel\r\n")
		parts := releaseBatch(t, c, releaseOf(north, me, 0), releaseOf(south, me, 0))
		requireError(t, parts[0].Err, lua.ClassPermanent, code)
		require.Equal(t,
			lua.BatchReleased{Released: lua.Released{Held: true, Refusal: "NOPERM no channel"}},
			parts[1])
	}
}

func TestUnexpectedReplyToAVoteIsAnUnknownOutcome(t *testing.T) {
	f, c := startFake(t)
	for _, reply := range []string{
		"+OK\r\n", ":2\r\n", "*0\r\n", "*1\r\n:1\r\n", "*2\r\n:0\r\n:0\r\n", "*2\r\n:-5\r\n:0\r\n",
		"*2\r\n+a\r\n:0\r\n", "*2\r\n:5\r\n:7\r\n",
		"*2\r\n:5\r\n+a\r\n", "*3\r\n:1\r\n:2\r\n:3\r\n", "*4\r\n:1\r\n+a\r\n:3\r\n:4\r\n",
	} {
		f.says(reply)
		v, err := lua.AcquireVote(t.Context(), c, lock, me, lease, lua.Delay{For: time.Hour})
		require.Contains(t, requireError(t, err, lua.ClassUnknown, "").Message, "unexpected reply",
			"%q", reply)
		require.Equal(t, lua.Vote{}, v)
	}
}

func TestConnectionThatEndsDuringABatchIsAnUnknownOutcome(t *testing.T) {
	f, c := startFake(t)
	f.hangsUp()
	_, _, err := lua.AcquireBatch(t.Context(), c, lease, batchInOrder(north, middle))
	requireError(t, err, lua.ClassUnknown, "")
	_, err = lua.ReleaseBatch(t.Context(), c, lua.Classic, []lua.BatchPart{releaseOf(north, me, 0)})
	requireError(t, err, lua.ClassUnknown, "")
	_, err = lua.AcquireVote(t.Context(), c, lock, me, lease, undelayed)
	requireError(t, err, lua.ClassUnknown, "")
}

// batchInOrder returns requests in the given order: north is free, the owner holds a level of
// middle, and south is free.
func batchInOrder(order ...string) []lua.BatchPart {
	all := map[string]lua.BatchPart{
		north:  {Lock: north, Owner: me, Count: 1},
		middle: {Lock: middle, Owner: me, Count: 2, Nested: true},
		south:  {Lock: south, Owner: me, Count: 1},
	}
	requests := make([]lua.BatchPart, len(order))
	for i, lock := range order {
		requests[i] = all[lock]
	}
	return requests
}
