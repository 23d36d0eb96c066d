package lua_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/fakeredis"
	"holdfast/lua"
)

func TestErrorRepliesAreClassified(t *testing.T) {
	const (
		inScript = " script: 5e2f0d, on @user_script:12."
		raised62 = "ERR Error running script " +
			"(call to f_5e2f0d9c1b7a4e6d8f3a2b1c0d9e8f7a6b5c4d3e): @user_script:12: "
		refused62  = raised62 + "@user_script: 12: "
		returned62 = "@user_script: 12: "
		noCommand  = "The user executing the script can't run this command or subcommand"
		noKey      = "The user executing the script can't access at least one of the keys " +
			"mentioned in the command arguments "
		acl       = "ACL failure in script: User app has no permissions to run the 'pexpire' command"
		readOnly  = "READONLY You can't write against a read only replica."
		oom       = "OOM command not allowed when used memory > 'maxmemory'."
		wrongType = "WRONGTYPE Operation against a key holding the wrong kind of value"
	)
	server, c := startFake(t)
	for _, test := range []struct {
		class    lua.Class
		code     string
		messages []string // of several versions of servers: from clients, from scripts
	}{
		{lua.ClassTemporary, "LOADING", []string{"LOADING Redis is loading the dataset in memory"}},
		{lua.ClassTemporary, "BUSY", []string{
			"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."}},
		{lua.ClassTemporary, "TRYAGAIN", []string{
			"TRYAGAIN Multiple keys request during rehashing of slot"}},
		{lua.ClassTemporary, "CLUSTERDOWN", []string{"CLUSTERDOWN Hash slot not served"}},
		{lua.ClassTemporary, "MASTERDOWN", []string{
			"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."}},
		{lua.ClassTemporary, "NOREPLICAS", []string{"NOREPLICAS Not enough good replicas to write.",
			refused62 + "-NOREPLICAS Not enough good replicas to write. "}},
		{lua.ClassTemporary, "MOVED", []string{"MOVED 3999 127.0.0.1:6381"}},
		{lua.ClassTemporary, "ASK", []string{"ASK 3999 127.0.0.1:6381"}},
		{lua.ClassTemporary, "MAXCLIENTS", []string{"ERR max number of clients reached",
			"ERR max number of clients + cluster connections reached"}},
		{lua.ClassTemporary, "UNBLOCKED", []string{"UNBLOCKED force unblock from blocking operation, " +
			"instance state changed (master -> replica?)"}},
		{lua.ClassUnknown, "HALFMOVED", []string{
			"ERR Script attempted to access a non local key in a cluster node" + inScript,
			refused62 + "Lua script attempted to access a non local key in a cluster node "}},
		{lua.ClassPermanent, "READONLY", []string{readOnly, refused62 + "-" + readOnly + " ",
			returned62 + "-" + readOnly + "  ", "-" + readOnly}},
		{lua.ClassPermanent, "OOM", []string{oom, oom + inScript, refused62 + "-" + oom + " "}},
		{lua.ClassPermanent, "MISCONF", []string{"MISCONF Redis is configured to save RDB snapshots, " +
			"but it's currently unable to persist to disk.",
			refused62 + "-MISCONF Errors writing to the AOF file: No space left on device "}},
		{lua.ClassPermanent, "NOAUTH", []string{"NOAUTH Authentication required."}},
		{lua.ClassPermanent, "WRONGPASS", []string{
			"WRONGPASS invalid username-password pair or user is disabled."}},
		{lua.ClassPermanent, "NOPERM", []string{
			"NOPERM this user has no permissions to run the 'evalsha' command",
			"ERR " + noCommand + inScript, "ERR " + acl + inScript, "NOPERM " + acl,
			refused62 + noCommand + " ", refused62 + noKey, returned62 + noCommand}},
		{lua.ClassPermanent, "WRONGTYPE", []string{wrongType, raised62 + wrongType + " "}},
		{lua.ClassPermanent, "CROSSSLOT", []string{
			"CROSSSLOT Keys in request don't hash to the same slot"}},
		{lua.ClassPermanent, "NOPROTO", []string{"NOPROTO unsupported protocol version"}},
		{lua.ClassPermanent, "DENIED", []string{
			"DENIED Redis is running in protected mode because protected mode is enabled"}},
		{lua.ClassPermanent, "UNSUPPORTED", []string{
			"ERR unknown command 'EVALSHA', with args beginning with: 'abc' '1' "}},
		{lua.ClassPermanent, "NOCOMMAND", []string{
			"ERR Unknown Redis command called from script" + inScript,
			"ERR This Redis command is not allowed from script" + inScript,
			"ERR This Valkey command is not allowed from script" + inScript,
			"ERR Unknown command called from script" + inScript,
			refused62 + "Unknown Redis command called from Lua script ",
			refused62 + "This Redis command is not allowed from scripts "}},
		// Codes of scripts of ours precede the server's reason.
		{lua.ClassPermanent, "NOINFO", []string{"NOINFO ERR " + acl, "NOINFO " + returned62 + noCommand,
			"NOINFO ERR This Redis command is not allowed from script"}},
		{lua.ClassPermanent, "NOEPOCH", []string{"NOEPOCH " + wrongType,
			"NOEPOCH " + raised62 + wrongType}},
		{lua.ClassPermanent, "NOTLOCK", []string{"NOTLOCK a hold count is -" + readOnly}},
	} {
		for _, message := range test.messages {
			says(server, errors.New(message))
			_, err := lockPlain(t.Context(), c, lease)
			e := requireError(t, err, test.class, test.code)
			var reply *rueidis.RedisError
			require.ErrorAs(t, err, &reply)
			require.Equal(t, reply.Error(), e.Message)
			requireError(t, lua.Classify(fmt.Errorf("look: %w", reply)), test.class, test.code)
		}
	}
	for message, code := range map[string]string{ // unknown ones are permanent
		"ERR something new":   "ERR",
		"something new":       "ERR",
		"NEWCODE some reason": "NEWCODE",
		raised62 + "@user_script: 12: Wrong number of args calling Redis command From Lua script ": "ERR",
		raised62 + "user_script:12: attempt to index nil":                                          "ERR",
		"": "ERR",
	} {
		says(server, errors.New(message))
		_, err := lockPlain(t.Context(), c, lease)
		var e *lua.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, lua.ClassPermanent, e.Class, "%q", message)
		require.Equal(t, code, e.Code, "%q", message)
		require.NotEmpty(t, e.Message, "%q", message)
		require.Equal(t, e.Message, err.Error(), "no advice is added")
	}
}

// startFake returns a server that replies what a test says, also what only servers do that are not
// at hand.
func startFake(tb testing.TB) (*fakeredis.Server, rueidis.Client) {
	tb.Helper()
	server := fakeredis.New()
	c, err := rueidis.NewClient(server.ClientOption())
	require.NoError(tb, err)
	tb.Cleanup(func() {
		c.Close()
		server.Close()
	})
	return server, c
}

// says sets the reply to scripts.
func says(server *fakeredis.Server, reply any) {
	for _, command := range []string{"EVALSHA", "EVAL"} {
		server.Handle(command, func([]string) any { return reply })
	}
}

func TestErrorsOfTheConnectionAreClassified(t *testing.T) {
	for _, test := range []struct {
		err    error
		class  lua.Class
		advice string
	}{
		{&net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED},
			lua.ClassTemporary, "is the server up"},
		{&net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded},
			lua.ClassTemporary, "is the server up"},
		{fmt.Errorf("dial: %w", &net.OpError{Op: "dial", Err: syscall.EHOSTUNREACH}),
			lua.ClassTemporary, "is the server up"},
		{&net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET},
			lua.ClassUnknown, "connection was closed"},
		{&net.OpError{Op: "write", Net: "tcp", Err: syscall.EPIPE},
			lua.ClassUnknown, "connection was closed"},
		{io.EOF, lua.ClassUnknown, "connection was closed"},
		{io.ErrUnexpectedEOF, lua.ClassUnknown, "connection was closed"},
		{tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"},
			lua.ClassPermanent, "remove rueidis.ClientOption.TLSConfig"},
		{&tls.CertificateVerificationError{Err: errors.New("unknown authority")},
			lua.ClassPermanent, "RootCAs"},
		{errors.New("received unknown message type: 21"), lua.ClassPermanent, "wants TLS"},
		{rueidis.ErrNoCache, lua.ClassPermanent, "DisableCache"},
		{rueidis.ErrClosing, lua.ClassUnknown, "client was closed"},
		{context.DeadlineExceeded, lua.ClassUnknown, "did not reply in time"},
		{os.ErrDeadlineExceeded, lua.ClassUnknown, "did not reply in time"},
		{context.Canceled, lua.ClassUnknown, ""},
		{errors.New("something new"), lua.ClassUnknown, ""},
	} {
		err := lua.Classify(test.err)
		var e *lua.Error
		require.ErrorAs(t, err, &e)
		require.ErrorIs(t, err, test.err)
		require.Equal(t, test.class, e.Class, test.err)
		require.Empty(t, e.Code)
		require.Equal(t, test.err.Error(), e.Message)
		require.Contains(t, e.Advice, test.advice)
		require.Equal(t, test.advice == "", e.Advice == "", test.err)
	}
}

func TestRefusedCachingIsClassifiedByItsReason(t *testing.T) {
	for _, test := range []struct {
		reply  string
		class  lua.Class
		code   string
		advice string
	}{
		{"BUSY Redis is busy running a script.", lua.ClassTemporary, "BUSY", "a script is blocking"},
		{"LOADING Redis is loading the dataset in memory",
			lua.ClassTemporary, "LOADING", "loading its data"},
		{"NOPERM User app has no permissions to run the 'client|tracking' command",
			lua.ClassPermanent, "NOPERM", "DisableCache"},
		{"Unknown subcommand or wrong number of arguments for 'TRACKING'",
			lua.ClassPermanent, "", "DisableCache"},
	} {
		err := fmt.Errorf("%s: [CLIENT TRACKING ON OPTIN]\n%w", test.reply, rueidis.ErrNoCache)
		e := requireError(t, lua.Classify(err), test.class, test.code)
		require.Contains(t, e.Advice, test.advice)
		require.ErrorIs(t, e.Err, rueidis.ErrNoCache)
	}
}

// Once rueidis has refreshed its map of the slots, it no longer sends a command whose slot has no
// node: whether it notices or the server is a matter of chance.
func TestSlotWithoutNodeIsTheSameErrorFromRueidis(t *testing.T) {
	e := requireError(t, lua.Classify(fmt.Errorf("lock: %w", rueidis.ErrNoSlot)),
		lua.ClassTemporary, "CLUSTERDOWN")
	require.Contains(t, e.Advice, "slot of this key")
	require.ErrorIs(t, e.Err, rueidis.ErrNoSlot)
}

func TestClassOfLooksThroughWrapping(t *testing.T) {
	require.NoError(t, lua.Classify(nil))
	refused := lua.Classify(&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED})
	require.Equal(t, lua.ClassTemporary, lua.ClassOf(fmt.Errorf("lock: %w", refused)))
	require.Equal(t, lua.ClassUnknown, lua.ClassOf(io.EOF))
	require.Equal(t, lua.ClassUnknown, lua.ClassOf(nil))
}

func FuzzClassify(f *testing.F) {
	for _, message := range []string{
		"", "ERR", "OOM", "ERR ", "-", "@user_script: 1: -OOM", "Error running script @user_script:",
		"MOVED", "\xff\r\n", "NOSCRIPT",
	} {
		f.Add(message)
	}
	server, client := startFake(f)
	f.Fuzz(func(t *testing.T, message string) {
		says(server, errors.New(strings.NewReplacer("\r", " ", "\n", " ").Replace(message)))
		_, refused := lockPlain(context.Background(), client, lease)
		var e *lua.Error
		for _, err := range []error{lua.Classify(errors.New(message)), refused} {
			require.ErrorAs(t, err, &e)
			require.NotEmpty(t, e.Message)
			require.Contains(t, err.Error(), e.Message)
			require.Contains(t,
				[]lua.Class{lua.ClassUnknown, lua.ClassTemporary, lua.ClassPermanent}, e.Class)
		}
		require.NotEmpty(t, e.Code) // of the server's
	})
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
	"release.lua": {7, nil, list{3}, list{7, "", 0}, list{3, 1, 0}, list{3, "", "x"}, list{4, "", nil},
		list{4, "", 1, 1}, list{3, "", 1, "x"}, list{3, "", 1, 1, 1}},
	"batch_release.lua": {nil, 1, list{list{1, ""}, list{1, ""}}, list{7}, list{nil}, list{list{1}},
		list{list{"a", ""}}, list{list{1, list{}}}},
	"inspect.lua": {nil, 1, list{1, list{"a"}}},
}

// The script did run, so its outcome is unknown.
func TestUnexpectedReplyIsAnUnknownOutcome(t *testing.T) {
	server, c := startFake(t)
	for _, k := range calls {
		for of, replies := range unexpectedReplies {
			if of != "" && of != k.script {
				continue
			}
			for _, reply := range replies {
				_, isList := reply.(list)
				if k.script == "identity.lua" && isList || // any texts will do
					k.script == "fenced_acquire.lua" && reply == any(-5) { // a token
					continue
				}
				says(server, reply)
				got := k.do(t.Context(), c)
				e := requireError(t, errorOf(got), lua.ClassUnknown, "")
				require.Regexp(t, "unexpected reply|is not a number", e.Message, "%s: %v", k.script, reply)
				require.NotContains(t, outlined(got), "true", "%s: %v", k.script, reply)
				require.Nil(t, holderOf(got), "%s: %v", k.script, reply)
			}
		}
		says(server, list{errors.New("OOM command not allowed"), ""})
		if strings.Contains(k.script, "release") && k.script != "batch_release.lua" {
			requireError(t, errorOf(k.do(t.Context(), c)), lua.ClassPermanent, "OOM")
		}
		breaks, broken := startFake(t)
		breaks.Handle("EVALSHA", func([]string) any { breaks.Disconnect(); return nil })
		err := errorOf(k.do(t.Context(), broken))
		require.Error(t, err, k.script)
		require.Equal(t, lua.ClassUnknown, lua.ClassOf(err), k.script)
	}
}

func TestUnexpectedReplyKeepsItsCause(t *testing.T) {
	server, c := startFake(t)
	says(server, "OK")
	_, err := lua.Inspect(t.Context(), c, lock)
	var e *lua.Error
	require.ErrorAs(t, err, &e)
	require.True(t, rueidis.IsParseErr(e.Unwrap()))
	require.ErrorIs(t, lua.Classify(rueidis.Nil), rueidis.Nil)
}

func TestRefusalBeginsWithItsCodeOnEveryVersion(t *testing.T) {
	const (
		channel = "The user executing the script can't publish to the channel mentioned in the command"
		command = "The user executing the script can't run this command or subcommand"
		acl     = "ACL failure in script: User app has no permissions to access the 'c' channel"
	)
	server, c := startFake(t)
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
	server, c := startFake(t)
	for message, code := range map[string]string{
		"@user_script: 18: -READONLY You can't write against a read only replica.": "READONLY",
		"WRONGTYPE Operation against a key holding the wrong kind of value":        "WRONGTYPE",
		"ERR The user executing the script can't access at least one of the keys " +
			"mentioned in the command": "NOPERM",
	} {
		says(server, list{errors.New(message), list{1, "NOPERM no channel"}})
		parts := releaseBatch(t, c, releaseOf(north, 0), releaseOf(south, 0))
		requireError(t, parts[0].Err, lua.ClassPermanent, code)
		require.Equal(t,
			lua.BatchReleased{Released: lua.Released{Held: true, Refusal: "NOPERM no channel"}}, parts[1])
	}
}
