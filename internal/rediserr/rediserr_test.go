package rediserr_test

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
	"holdfast/internal/rediserr"
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
	server, c := fakeredis.Start(t)
	for _, test := range []struct {
		class    rediserr.Class
		code     string
		messages []string // of several versions of servers: from clients, from scripts
	}{
		{rediserr.ClassTemporary, "LOADING", []string{"LOADING Redis is loading the dataset in memory"}},
		{rediserr.ClassTemporary, "BUSY", []string{
			"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."}},
		{rediserr.ClassTemporary, "TRYAGAIN", []string{
			"TRYAGAIN Multiple keys request during rehashing of slot"}},
		{rediserr.ClassTemporary, "CLUSTERDOWN", []string{"CLUSTERDOWN Hash slot not served"}},
		{rediserr.ClassTemporary, "MASTERDOWN", []string{
			"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."}},
		{rediserr.ClassTemporary, "NOREPLICAS", []string{"NOREPLICAS Not enough good replicas to write.",
			refused62 + "-NOREPLICAS Not enough good replicas to write. "}},
		{rediserr.ClassTemporary, "MOVED", []string{"MOVED 3999 127.0.0.1:6381"}},
		{rediserr.ClassTemporary, "ASK", []string{"ASK 3999 127.0.0.1:6381"}},
		{rediserr.ClassTemporary, "MAXCLIENTS", []string{"ERR max number of clients reached",
			"ERR max number of clients + cluster connections reached"}},
		{rediserr.ClassTemporary, "UNBLOCKED", []string{
			"UNBLOCKED force unblock from blocking operation, " +
				"instance state changed (master -> replica?)"}},
		{rediserr.ClassUnknown, "HALFMOVED", []string{
			"ERR Script attempted to access a non local key in a cluster node" + inScript,
			refused62 + "Lua script attempted to access a non local key in a cluster node "}},
		{rediserr.ClassPermanent, "READONLY", []string{readOnly, refused62 + "-" + readOnly + " ",
			returned62 + "-" + readOnly + "  ", "-" + readOnly}},
		{rediserr.ClassPermanent, "OOM", []string{oom, oom + inScript, refused62 + "-" + oom + " "}},
		{rediserr.ClassPermanent, "MISCONF", []string{
			"MISCONF Redis is configured to save RDB snapshots, " +
				"but it's currently unable to persist to disk.",
			refused62 + "-MISCONF Errors writing to the AOF file: No space left on device "}},
		{rediserr.ClassPermanent, "NOAUTH", []string{"NOAUTH Authentication required."}},
		{rediserr.ClassPermanent, "WRONGPASS", []string{
			"WRONGPASS invalid username-password pair or user is disabled."}},
		{rediserr.ClassPermanent, "NOPERM", []string{
			"NOPERM this user has no permissions to run the 'evalsha' command",
			"ERR " + noCommand + inScript, "ERR " + acl + inScript, "NOPERM " + acl,
			refused62 + noCommand + " ", refused62 + noKey, returned62 + noCommand}},
		{rediserr.ClassPermanent, "WRONGTYPE", []string{wrongType, raised62 + wrongType + " "}},
		{rediserr.ClassPermanent, "CROSSSLOT", []string{
			"CROSSSLOT Keys in request don't hash to the same slot"}},
		{rediserr.ClassPermanent, "NOPROTO", []string{"NOPROTO unsupported protocol version"}},
		{rediserr.ClassPermanent, "DENIED", []string{
			"DENIED Redis is running in protected mode because protected mode is enabled"}},
		{rediserr.ClassPermanent, "UNSUPPORTED", []string{
			"ERR unknown command 'EVALSHA', with args beginning with: 'abc' '1' "}},
		{rediserr.ClassPermanent, "NOCOMMAND", []string{
			"ERR Unknown Redis command called from script" + inScript,
			"ERR This Redis command is not allowed from script" + inScript,
			"ERR This Valkey command is not allowed from script" + inScript,
			"ERR Unknown command called from script" + inScript,
			refused62 + "Unknown Redis command called from Lua script ",
			refused62 + "This Redis command is not allowed from scripts "}},
		// Codes of scripts of ours precede the server's reason.
		{rediserr.ClassPermanent, "NOINFO", []string{
			"NOINFO ERR " + acl, "NOINFO " + returned62 + noCommand,
			"NOINFO ERR This Redis command is not allowed from script"}},
		{rediserr.ClassPermanent, "NOEPOCH", []string{"NOEPOCH " + wrongType,
			"NOEPOCH " + raised62 + wrongType}},
		{rediserr.ClassPermanent, "NOTLOCK", []string{"NOTLOCK a hold count is -" + readOnly}},
	} {
		for _, message := range test.messages {
			says(server, errors.New(message))
			err := rediserr.Classify(callScript(t.Context(), c))
			e := requireError(t, err, test.class, test.code)
			var reply *rueidis.RedisError
			require.ErrorAs(t, err, &reply)
			require.Equal(t, reply.Error(), e.Message)
			requireError(t, rediserr.Classify(fmt.Errorf("look: %w", reply)), test.class, test.code)
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
		err := rediserr.Classify(callScript(t.Context(), c))
		var e *rediserr.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, rediserr.ClassPermanent, e.Class, "%q", message)
		require.Equal(t, code, e.Code, "%q", message)
		require.NotEmpty(t, e.Message, "%q", message)
		require.Equal(t, e.Message, err.Error(), "no advice is added")
	}
}

func TestErrorsOfTheConnectionAreClassified(t *testing.T) {
	for _, test := range []struct {
		err    error
		class  rediserr.Class
		advice string
	}{
		{&net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED},
			rediserr.ClassTemporary, "check that the server is running"},
		{&net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded},
			rediserr.ClassTemporary, "check that the server is running"},
		{fmt.Errorf("dial: %w", &net.OpError{Op: "dial", Err: syscall.EHOSTUNREACH}),
			rediserr.ClassTemporary, "check that the server is running"},
		{&net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET},
			rediserr.ClassUnknown, "connection was closed"},
		{&net.OpError{Op: "write", Net: "tcp", Err: syscall.EPIPE},
			rediserr.ClassUnknown, "connection was closed"},
		{io.EOF, rediserr.ClassUnknown, "connection was closed"},
		{io.ErrUnexpectedEOF, rediserr.ClassUnknown, "connection was closed"},
		{tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"},
			rediserr.ClassPermanent, "remove rueidis.ClientOption.TLSConfig"},
		{&tls.CertificateVerificationError{Err: errors.New("unknown authority")},
			rediserr.ClassPermanent, "RootCAs"},
		{errors.New("received unknown message type: 21"), rediserr.ClassPermanent, "uses TLS"},
		{rueidis.ErrNoCache, rediserr.ClassPermanent, "DisableCache"},
		{rueidis.ErrClosing, rediserr.ClassUnknown, "client was closed"},
		{context.DeadlineExceeded, rediserr.ClassUnknown, "did not reply in time"},
		{os.ErrDeadlineExceeded, rediserr.ClassUnknown, "did not reply in time"},
		{context.Canceled, rediserr.ClassUnknown, ""},
		{errors.New("something new"), rediserr.ClassUnknown, ""},
	} {
		err := rediserr.Classify(test.err)
		var e *rediserr.Error
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
		class  rediserr.Class
		code   string
		advice string
	}{
		{"BUSY Redis is busy running a script.", rediserr.ClassTemporary, "BUSY", "a script is blocking"},
		{"LOADING Redis is loading the dataset in memory",
			rediserr.ClassTemporary, "LOADING", "loading its data"},
		{"NOPERM User app has no permissions to run the 'client|tracking' command",
			rediserr.ClassPermanent, "NOPERM", "DisableCache"},
		{"Unknown subcommand or wrong number of arguments for 'TRACKING'",
			rediserr.ClassPermanent, "", "DisableCache"},
	} {
		err := fmt.Errorf("%s: [CLIENT TRACKING ON OPTIN]\n%w", test.reply, rueidis.ErrNoCache)
		e := requireError(t, rediserr.Classify(err), test.class, test.code)
		require.Contains(t, e.Advice, test.advice)
		require.ErrorIs(t, e.Err, rueidis.ErrNoCache)
	}
}

// Once rueidis has refreshed its map of the slots, it no longer sends a command whose slot has no
// node: whether it notices or the server is a matter of chance.
func TestSlotWithoutNodeIsTheSameErrorFromRueidis(t *testing.T) {
	e := requireError(t, rediserr.Classify(fmt.Errorf("lock: %w", rueidis.ErrNoSlot)),
		rediserr.ClassTemporary, "CLUSTERDOWN")
	require.Contains(t, e.Advice, "slot of this key")
	require.ErrorIs(t, e.Err, rueidis.ErrNoSlot)
}

func TestClassOfLooksThroughWrapping(t *testing.T) {
	require.NoError(t, rediserr.Classify(nil))
	refused := rediserr.Classify(&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED})
	require.Equal(t, rediserr.ClassTemporary, rediserr.ClassOf(fmt.Errorf("lock: %w", refused)))
	require.Equal(t, rediserr.ClassUnknown, rediserr.ClassOf(io.EOF))
	require.Equal(t, rediserr.ClassUnknown, rediserr.ClassOf(nil))
}

func FuzzClassify(f *testing.F) {
	for _, message := range []string{
		"", "ERR", "OOM", "ERR ", "-", "@user_script: 1: -OOM", "Error running script @user_script:",
		"MOVED", "\xff\r\n", "NOSCRIPT",
	} {
		f.Add(message)
	}
	server, client := fakeredis.Start(f)
	f.Fuzz(func(t *testing.T, message string) {
		says(server, errors.New(strings.NewReplacer("\r", " ", "\n", " ").Replace(message)))
		refused := rediserr.Classify(callScript(context.Background(), client))
		var e *rediserr.Error
		for _, err := range []error{rediserr.Classify(errors.New(message)), refused} {
			require.ErrorAs(t, err, &e)
			require.NotEmpty(t, e.Message)
			require.Contains(t, err.Error(), e.Message)
			require.Contains(t,
				[]rediserr.Class{rediserr.ClassUnknown, rediserr.ClassTemporary, rediserr.ClassPermanent},
				e.Class)
		}
		require.NotEmpty(t, e.Code) // of the server's
	})
}
