package lua

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"regexp"
	"strings"
	"syscall"

	"github.com/redis/rueidis"
)

// Class tells what an error means for somebody who wants a lock.
type Class int

const (
	// Unknown: the command was sent, or may have been; whether it was executed is not known.
	Unknown Class = iota
	// Temporary: the command was not executed, and the reason is expected to pass by itself.
	Temporary
	// Permanent: the command was not executed and will not be until somebody changes something. Advice says what.
	Permanent
)

// Error is a command that did not give its answer.
type Error struct {
	Class   Class
	Code    string // the server's error code, such as READONLY; "" for an error that is not the server's
	Message string
	Advice  string // what to do about it, if anything
	Err     error  // the cause, if any
}

// Error gives the message and the advice.
func (e *Error) Error() string {
	if e.Advice == "" {
		return e.Message
	}
	return e.Message + " (" + e.Advice + ")"
}

// Unwrap returns the cause, for [errors.Is] and [errors.As].
func (e *Error) Unwrap() error { return e.Err }

// ClassOf is the class of an error of this package; Unknown for any other.
func ClassOf(err error) Class {
	var e *Error
	if errors.As(err, &e) {
		return e.Class
	}
	return Unknown
}

// Classify translates an error of rueidis. It returns nil for nil.
func Classify(err error) error {
	if err == nil {
		return nil
	}
	if refusal, ok := rueidis.IsRedisErr(err); ok {
		return refused(refusal)
	}
	return failed(err)
}

// refused classifies an error reply. A reply that is not known is permanent: the server did not do what it was asked
// to, and waiting is no reason for it to change its mind.
func refused(reply *rueidis.RedisError) *Error {
	message := reply.Error()
	e := &Error{Class: Permanent, Code: codeOf(message), Message: message, Err: reply}
	if v, ok := verdicts[e.Code]; ok {
		e.Class, e.Advice = v.class, v.advice
	}
	return e
}

// verdict is what is known about an error code.
type verdict struct {
	class  Class
	advice string
}

var verdicts = map[string]verdict{
	"LOADING":     {Temporary, "the server is loading its data"},
	"BUSY":        {Temporary, "a script is blocking the server"},
	"TRYAGAIN":    {Temporary, "the cluster is moving the slot of this key"},
	"CLUSTERDOWN": {Temporary, "the cluster does not serve the slot of this key at present"},
	"MASTERDOWN":  {Temporary, "the replica has lost its master"},
	"NOREPLICAS":  {Temporary, "the server wants more replicas than are connected: see min-replicas-to-write"},
	"MOVED":       {Temporary, "the client did not follow a redirection: leave rueidis.ClientOption.DisableRetry at false"},
	"ASK":         {Temporary, "the client did not follow a redirection: leave rueidis.ClientOption.DisableRetry at false"},
	maxClients:    {Temporary, "the server has no connection left: see its maxclients"},
	"READONLY":    {Permanent, "this server is a replica: connect to the master, or let rueidis find it through Sentinel"},
	"OOM":         {Permanent, "the server is out of memory: raise maxmemory, or choose a maxmemory-policy that makes room without evicting locks"},
	"MISCONF":     {Permanent, "the server cannot save to disk and refuses writes: see its log and stop-writes-on-bgsave-error"},
	"NOAUTH":      {Permanent, "the server wants a password: set rueidis.ClientOption.Password"},
	"WRONGPASS":   {Permanent, "user name or password are wrong: see rueidis.ClientOption.Username and Password"},
	"NOPERM":      {Permanent, "the ACL of this user forbids it: see \"Permissions\" in the README"},
	"WRONGTYPE":   {Permanent, "a key of this name exists and is not a lock: choose another name"},
	"CROSSSLOT":   {Permanent, "the keys of one call are in different cluster slots"},
	"NOPROTO":     {Permanent, "the server does not speak RESP3: set rueidis.ClientOption.AlwaysRESP2 and DisableCache"},
	"DENIED":      {Permanent, "the server is in protected mode: give it a password or an address of its own"},
	unsupported:   {Permanent, "holdfast needs Lua scripts: Redis 6.2 or newer, or Valkey"},
}

// Codes of our own for errors that the server gives the general code ERR.
const (
	maxClients  = "MAXCLIENTS"
	unsupported = "UNSUPPORTED"
)

var (
	leadingCode = regexp.MustCompile(`^[A-Z][A-Z0-9]+\b`)
	// Before Redis 7 an error inside a script comes wrapped, for example as "ERR Error running script (call to f_…):
	// @user_script:12: @user_script: 12: -OOM command not allowed when used memory > 'maxmemory'."
	nestedCode = regexp.MustCompile(`(?s)Error running script.*@user_script: ?\d+: -([A-Z][A-Z0-9]+)\b`)
)

// codeOf finds the code of an error message, also where an old server hides it.
func codeOf(message string) string {
	if nested := nestedCode.FindStringSubmatch(message); nested != nil {
		return nested[1]
	}
	switch code := leadingCode.FindString(message); {
	case code != "ERR" && code != "":
		return code
	case strings.Contains(message, "The user executing the script can't"): // Redis 6, inside a script
		return "NOPERM"
	case strings.Contains(message, "max number of clients"):
		return maxClients
	case strings.Contains(message, "unknown command"):
		return unsupported
	default:
		return "ERR"
	}
}

// failed classifies an error that is not the server's reply.
func failed(err error) *Error {
	e := &Error{Class: Unknown, Message: err.Error(), Err: err}
	var (
		dial        *net.OpError
		notTLS      tls.RecordHeaderError
		certificate *tls.CertificateVerificationError
	)
	switch {
	case errors.As(err, &notTLS):
		e.Class, e.Advice = Permanent, "the server does not speak TLS here: remove rueidis.ClientOption.TLSConfig, or use its TLS port"
	case errors.As(err, &certificate):
		e.Class, e.Advice = Permanent, "the server's certificate is not trusted: see RootCAs and ServerName in rueidis.ClientOption.TLSConfig"
	case strings.Contains(e.Message, "received unknown message type"):
		e.Class, e.Advice = Permanent, "that was not the Redis protocol: if the server wants TLS, set rueidis.ClientOption.TLSConfig"
	case errors.As(err, &dial) && dial.Op == "dial":
		e.Class, e.Advice = Temporary, "no connection: is the server up, and is the address right?"
	case errors.Is(err, rueidis.ErrClosing):
		e.Advice = "the rueidis client was closed, or lost its server"
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		e.Advice = "the connection was closed; if that happens every time, the server may want TLS: see rueidis.ClientOption.TLSConfig"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		e.Advice = "the server did not answer in time"
	}
	return e
}
