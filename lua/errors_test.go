package lua_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/lua"
)

func TestErrorRepliesAreClassified(t *testing.T) {
	const (
		raised62 = "ERR Error running script " +
			"(call to f_5e2f0d9c1b7a4e6d8f3a2b1c0d9e8f7a6b5c4d3e): @user_script:12: "
		returned62 = "@user_script: 12: "
	)
	for _, test := range []struct {
		message string
		class   lua.Class
		code    string
	}{
		{"LOADING Redis is loading the dataset in memory", lua.ClassTemporary, "LOADING"},
		{"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
			lua.ClassTemporary, "BUSY"},
		{"TRYAGAIN Multiple keys request during rehashing of slot", lua.ClassTemporary, "TRYAGAIN"},
		{"CLUSTERDOWN Hash slot not served", lua.ClassTemporary, "CLUSTERDOWN"},
		{"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
			lua.ClassTemporary, "MASTERDOWN"},
		{"NOREPLICAS Not enough good replicas to write.", lua.ClassTemporary, "NOREPLICAS"},
		{"MOVED 3999 127.0.0.1:6381", lua.ClassTemporary, "MOVED"},
		{"ASK 3999 127.0.0.1:6381", lua.ClassTemporary, "ASK"},
		{"ERR Script attempted to access a non local key in a cluster node " +
			"script: 5e2f0d, on @user_script:12.",
			lua.ClassUnknown, "HALFMOVED"},
		{"ERR max number of clients reached", lua.ClassTemporary, "MAXCLIENTS"},
		{"ERR max number of clients + cluster connections reached", lua.ClassTemporary, "MAXCLIENTS"},
		{"READONLY You can't write against a read only replica.", lua.ClassPermanent, "READONLY"},
		{"OOM command not allowed when used memory > 'maxmemory'.", lua.ClassPermanent, "OOM"},
		{"MISCONF Redis is configured to save RDB snapshots, but it's currently unable " +
			"to persist to disk.",
			lua.ClassPermanent, "MISCONF"},
		{"NOAUTH Authentication required.", lua.ClassPermanent, "NOAUTH"},
		{"WRONGPASS invalid username-password pair or user is disabled.",
			lua.ClassPermanent, "WRONGPASS"},
		{"NOPERM this user has no permissions to run the 'evalsha' command",
			lua.ClassPermanent, "NOPERM"},
		{"WRONGTYPE Operation against a key holding the wrong kind of value",
			lua.ClassPermanent, "WRONGTYPE"},
		{"CROSSSLOT Keys in request don't hash to the same slot", lua.ClassPermanent, "CROSSSLOT"},
		{"NOPROTO unsupported protocol version", lua.ClassPermanent, "NOPROTO"},
		{"DENIED Redis is running in protected mode because protected mode is enabled",
			lua.ClassPermanent, "DENIED"},
		{"ERR unknown command 'EVALSHA', with args beginning with: 'abc' '1' ",
			lua.ClassPermanent, "UNSUPPORTED"},

		// Redis 7.0, then 7.2, then 8.
		{"OOM command not allowed when used memory > 'maxmemory'. script: 5e2f0d, on @user_script:12.",
			lua.ClassPermanent, "OOM"},
		{"ERR The user executing the script can't run this command or subcommand " +
			"script: 5e2f0d, on @user_script:12.",
			lua.ClassPermanent, "NOPERM"},
		{"ERR ACL failure in script: User app has no permissions to run the 'pexpire' command " +
			"script: 5e2f0d, on @user_script:12.",
			lua.ClassPermanent, "NOPERM"},
		{"NOPERM ACL failure in script: User app has no permissions to run the 'pexpire' command",
			lua.ClassPermanent, "NOPERM"},
		{"ERR Unknown Redis command called from script script: 5e2f0d, on @user_script:12.",
			lua.ClassPermanent, "NOCOMMAND"},
		{"ERR This Redis command is not allowed from script script: 5e2f0d, on @user_script:12.",
			lua.ClassPermanent, "NOCOMMAND"},
		{"ERR This Valkey command is not allowed from script script: 5e2f0d, on @user_script:12.",
			lua.ClassPermanent, "NOCOMMAND"},
		{"ERR Unknown command called from script script: 5e2f0d, on @user_script:12.",
			lua.ClassPermanent, "NOCOMMAND"},

		// Before 7: the server did not run the command, …
		{raised62 + "@user_script: 12: Lua script attempted to access a non local key in a cluster node ",
			lua.ClassUnknown, "HALFMOVED"},
		{raised62 + "@user_script: 12: Unknown Redis command called from Lua script ",
			lua.ClassPermanent, "NOCOMMAND"},
		{raised62 + "@user_script: 12: This Redis command is not allowed from scripts ",
			lua.ClassPermanent, "NOCOMMAND"},
		{raised62 + "@user_script: 12: -OOM command not allowed when used memory > 'maxmemory'. ",
			lua.ClassPermanent, "OOM"},
		{raised62 + "@user_script: 12: -READONLY You can't write against a read only replica. ",
			lua.ClassPermanent, "READONLY"},
		{raised62 + "@user_script: 12: -NOREPLICAS Not enough good replicas to write. ",
			lua.ClassTemporary, "NOREPLICAS"},
		{raised62 + "@user_script: 12: -MISCONF Errors writing to the AOF file: No space left on device ",
			lua.ClassPermanent, "MISCONF"},
		{raised62 + "@user_script: 12: " +
			"The user executing the script can't run this command or subcommand ",
			lua.ClassPermanent, "NOPERM"},
		{raised62 + "@user_script: 12: The user executing the script can't access at least one " +
			"of the keys mentioned in the command arguments ",
			lua.ClassPermanent, "NOPERM"},
		// … the command failed, …
		{raised62 + "WRONGTYPE Operation against a key holding the wrong kind of value ",
			lua.ClassPermanent, "WRONGTYPE"},
		// … and the script returned what pcall gave it.
		{returned62 + "-READONLY You can't write against a read only replica.  ",
			lua.ClassPermanent, "READONLY"},
		{returned62 + "The user executing the script can't run this command or subcommand",
			lua.ClassPermanent, "NOPERM"},
		{"-READONLY You can't write against a read only replica.", lua.ClassPermanent, "READONLY"},
	} {
		t.Run(test.message, func(t *testing.T) {
			f, c := startFake(t)
			f.refuses(test.message)
			_, err := lockPlain(t.Context(), c, lock, me, lease)
			e := requireError(t, err, test.class, test.code)
			var reply *rueidis.RedisError
			require.ErrorAs(t, err, &reply)
			require.Equal(t, reply.Error(), e.Message)
		})
	}
}

func TestUnknownErrorReplyIsPermanent(t *testing.T) {
	f, c := startFake(t)
	for message, code := range map[string]string{
		"ERR something new":   "ERR",
		"something new":       "ERR",
		"NEWCODE some reason": "NEWCODE",
		"ERR Error running script (call to f_5e2f): @user_script:12: @user_script: 12: " +
			"Wrong number of args calling Redis command From Lua script ": "ERR",
		"ERR Error running script (call to f_5e2f): @user_script:12: user_script:12: " +
			"attempt to index nil": "ERR",
		"": "ERR",
	} {
		f.refuses(message)
		_, err := lockPlain(t.Context(), c, lock, me, lease)
		var e *lua.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, lua.ClassPermanent, e.Class, "%q", message)
		require.Equal(t, code, e.Code, "%q", message)
		require.NotEmpty(t, e.Message, "%q", message)
		require.Equal(t, e.Message, err.Error(), "no advice is added")
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
		t.Run(test.err.Error(), func(t *testing.T) {
			err := lua.Classify(test.err)
			var e *lua.Error
			require.ErrorAs(t, err, &e)
			require.ErrorIs(t, err, test.err)
			require.Equal(t, test.class, e.Class)
			require.Empty(t, e.Code)
			require.Equal(t, test.err.Error(), e.Message)
			if test.advice == "" {
				require.Empty(t, e.Advice)
			} else {
				require.Contains(t, e.Advice, test.advice)
			}
		})
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
		e := requireError(
			t,
			lua.Classify(
				fmt.Errorf("%s: [CLIENT TRACKING ON OPTIN]\n%w", test.reply, rueidis.ErrNoCache)),
			test.class,
			test.code,
		)
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

func TestNoErrorStaysNoError(t *testing.T) {
	require.NoError(t, lua.Classify(nil))
}

func TestClassOfLooksThroughWrapping(t *testing.T) {
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
		server.refuses(message)
		_, refused := lockPlain(context.Background(), client, lock, me, lease)
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
