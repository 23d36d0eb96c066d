// Package rediserr says what an error of Redis means for a caller that wants a lock, and what to do
// about it. [Classify] converts each error of rueidis to an [*Error]. Its Class says whether Redis
// rejected the command for now, rejected the command for good, or may have executed the command.
package rediserr

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/redis/rueidis"

	"holdfast/internal/docs"
	"holdfast/internal/printable"
	"holdfast/internal/wire"
)

// Class says what an error means for a caller that wants a lock.
type Class int

// The classes.
const (
	ClassUnknown   Class = iota // the server may have executed the command
	ClassTemporary              // the server rejected it for a reason that should pass by itself
	ClassPermanent              // the server rejects it until somebody follows the Advice
)

// Error is the failure of a command.
type Error struct {
	Class   Class
	Code    string // the server's error code, such as READONLY; "" if there is none
	Message string // safe to print, and cut off after some 400 bytes
	Advice  string // what to do about it, if anything
	Err     error  // the cause, if any
}

// Error returns the message and the advice.
func (e *Error) Error() string {
	if e.Advice == "" {
		return e.Message
	}
	return strings.TrimSuffix(e.Message, ".") + "; " + e.Advice
}

// Unwrap returns the cause, for [errors.Is] and [errors.As].
func (e *Error) Unwrap() error { return e.Err }

// ClassOf returns the class of an error of this package, and ClassUnknown for any other.
func ClassOf(err error) Class {
	e := new(Error) // its class is ClassUnknown
	errors.As(err, &e)
	return e.Class
}

// Classify converts an error of rueidis, even a wrapped one. Classify returns nil for nil, and an
// [*Error] for everything else.
func Classify(err error) error {
	if err == nil {
		return nil // before anything is allocated
	}
	var (
		known       *Error
		refusal     *rueidis.RedisError
		notNumber   *strconv.NumError
		notTLS      tls.RecordHeaderError
		certificate *tls.CertificateVerificationError
		dial        *net.OpError
	)
	class, advice := ClassUnknown, ""
	switch {
	case errors.As(err, &known):
		return err
	case errors.As(err, &refusal) && !rueidis.IsRedisNil(refusal):
		return refused(refusal.Error(), err)
	case rueidis.IsRedisNil(err), rueidis.IsParseErr(err), errors.As(err, &notNumber):
		return Unexpected(err)
	case errors.Is(err, rueidis.ErrNoCache):
		return untracked(err)
	case errors.Is(err, rueidis.ErrNoSlot): // rueidis finds what the server calls CLUSTERDOWN
		return refused("CLUSTERDOWN "+err.Error(), err)

	// From here on the error is not a reply of the server.
	case errors.As(err, &notTLS):
		class, advice = ClassPermanent, "this port does not use TLS; remove "+
			"rueidis.ClientOption.TLSConfig, or use the TLS port"
	case errors.As(err, &certificate):
		class, advice = ClassPermanent, "the certificate of the server is not trusted; set RootCAs "+
			"and ServerName in rueidis.ClientOption.TLSConfig"
	case strings.Contains(err.Error(), "received unknown message type"):
		class, advice = ClassPermanent, "this was not the Redis protocol; if the port uses TLS, "+
			"set rueidis.ClientOption.TLSConfig"
	case errors.As(err, &dial) && dial.Op == "dial":
		class, advice = ClassTemporary, "cannot connect to Redis; check that the server is running "+
			"and that the address is correct"
	case errors.Is(err, rueidis.ErrClosing):
		advice = "the rueidis client was closed, or lost its server"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		advice = "the connection was closed; if this happens every time, check whether the port " +
			"uses TLS (rueidis.ClientOption.TLSConfig)"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		// A client with TLS also gets this from a server without TLS, which waits for an end of line.
		advice = "the server did not reply in time; if this happens every time, check whether the " +
			"port uses TLS (rueidis.ClientOption.TLSConfig)"
	}
	message := printable.Short(cmp.Or(err.Error(), "an error without a text"))
	return &Error{Class: class, Message: message, Advice: advice, Err: err}
}

// HasCode reports whether the server rejected a command with one of these codes.
func HasCode(err error, codes ...string) bool {
	var e *Error
	return errors.As(err, &e) && slices.Contains(codes, e.Code)
}

// KeyForbidden reports whether the ACL forbids a key, and not the command.
func KeyForbidden(err error) bool {
	return HasCode(err, "NOPERM") && !strings.Contains(err.Error(), " run th")
}

// Demoted reports whether a server rejected a command because it is a replica.
func Demoted(err error) bool {
	if err == nil || rueidis.IsRedisNil(err) {
		return false
	}
	return HasCode(Classify(err), "READONLY", "MASTERDOWN")
}

// Redirected reports whether a command failed because another node of the cluster has its key, and
// which node. If asking, the slot is moving, and the node accepts only the next command, and only
// after ASKING. rueidis follows redirections by itself, but not on a dedicated connection.
func Redirected(err error) (node string, asking, ok bool) {
	var refusal *rueidis.RedisError
	if errors.As(err, &refusal) {
		node, asking = refusal.IsAsk()
		if !asking {
			node, ok = refusal.IsMoved()
		}
	}
	return node, asking, asking || ok
}

// refused classifies an error reply. An unknown reply is permanent, because the server did not
// execute the command, and nothing suggests that it will later.
func refused(message string, cause error) *Error {
	code, class := codeOf(message), ClassPermanent
	message = printable.Short(cmp.Or(message, "an error reply without a text"))
	switch code {
	case "LOADING", "BUSY", "TRYAGAIN", "CLUSTERDOWN", "MASTERDOWN", "NOREPLICAS", "MOVED", "ASK",
		"MAXCLIENTS", "UNBLOCKED":
		class = ClassTemporary
	case HalfMoved:
		class = ClassUnknown
	}
	e := &Error{Class: class, Code: code, Message: message, Advice: advice[code], Err: cause}
	for _, named := range namedCommand {
		if found := named.FindStringSubmatch(message); found != nil {
			Advise(e, found[1])
		}
	}
	return e
}

// namedCommand matches errors that name the rejected command.
var namedCommand = []*regexp.Regexp{
	regexp.MustCompile("unknown command ['`]([A-Za-z]+)"),
	regexp.MustCompile(`permissions to run the '([a-z]+)`),
}

// Advise adds to the advice of e what to do without a rejected command.
func Advise(e *Error, command string) {
	if without := withoutCommand[strings.ToUpper(command)]; without != "" {
		e.Advice += "; " + without
	}
}

const noScripts = "holdfast needs Lua scripts; use Redis 6.2 or newer, or Valkey"

// withoutCommand says what to do without a command, for commands that some servers keep from
// clients or scripts.
var withoutCommand = map[string]string{
	"EVAL":    noScripts,
	"EVALSHA": noScripts,
	"TIME":    "only fair locks, package once, and redlock.Options.Epoch need TIME",
	"WAIT":    "rlock.Options.SyncReplicas needs WAIT; grant +wait, or set SyncReplicas to 0",
	"CLUSTER": "a client of a cluster needs CLUSTER SLOTS",
}

const notFollowed = "the client did not follow a redirection; leave " +
	"rueidis.ClientOption.DisableRetry at false, and grant +cluster, because otherwise rueidis " +
	"takes a cluster for a single server"

// advice says what an error code means and what to do about it.
var advice = map[string]string{
	"LOADING":     "the server is loading its data",
	"BUSY":        "a script is blocking the server",
	"TRYAGAIN":    "the cluster is moving the slot of this key",
	"CLUSTERDOWN": "the cluster does not serve the slot of this key at the moment",
	"MASTERDOWN":  "the replica has lost its master",
	"NOREPLICAS":  "fewer replicas than min-replicas-to-write are connected; bring replicas back",
	"MOVED":       notFollowed,
	"ASK":         notFollowed,
	HalfMoved: "the cluster is moving the slot of this key, and has moved part of what belongs " +
		"to it",
	"MAXCLIENTS": "the server has no connection left; raise its maxclients",
	"UNBLOCKED":  "the master became a replica while it waited for replicas",
	"READONLY": "this server is a replica; connect to the master, or let rueidis find it through " +
		"Sentinel. If the address has moved to another server, set " +
		"rueidis.ClientOption.ConnLifetime, so that connections follow the address",
	"OOM": "Redis is out of memory; raise maxmemory, or move other data away. Do not set an " +
		"evicting maxmemory-policy, because it can evict locks",
	"MISCONF": "Redis cannot save to disk and rejects writes; check its log and " +
		"stop-writes-on-bgsave-error",
	"NOAUTH": "Redis requires a password; set rueidis.ClientOption.Password",
	"WRONGPASS": "the user name or the password is wrong; check rueidis.ClientOption.Username and " +
		"rueidis.ClientOption.Password",
	"NOPERM": "the ACL of this user does not allow this command, key, or channel; see " +
		docs.Base + "permissions.md",
	"WRONGTYPE": "a key with the name of this lock, or one of its helper keys, is not part of a " +
		"lock; use another name",
	"CROSSSLOT": "the keys of one call are in different cluster slots",
	"NOPROTO": "the server does not support RESP3; set rueidis.ClientOption.AlwaysRESP2 and " +
		"rueidis.ClientOption.DisableCache",
	"DENIED": "the server is in protected mode; set a password on the server, or bind an address",
	"NOINFO": "a RedLock reads the uptime of the server; grant +info to this user, or set " +
		"redlock.Options.FsyncAlways",
	"NOEPOCH": "something else writes to the key " + wire.EpochKey + "; delete it, and the server " +
		"counts again after the delay",
	"NOTLOCK": "something else writes to the key of this lock or to one of its helper keys, or more " +
		"than 10,000 readers hold the lock; use another name, or delete the key if it is not a lock",
	NoCommand: "scripts on this server may not call a command that this needs; see " + docs.Base +
		"servers.md",
	Unsupported: "the server lacks a command that this needs; see " + docs.Base + "servers.md",
}

// Our own codes, for errors to which the server gives the general code ERR.
const (
	HalfMoved = "HALFMOVED" // the script was aborted at a key that has moved to another node
	NoCommand = "NOCOMMAND" // the script called a command that the server lacks or forbids
	// Unsupported is the code if the server lacks a command that the client sent.
	Unsupported = "UNSUPPORTED"
)

// codes has the patterns of error messages. Without a code, the last group of the pattern is the
// code. The first matching pattern counts. rueidis cuts off a leading "ERR ".
var codes = []struct {
	message *regexp.Regexp
	code    string
}{
	// Our scripts return these, followed by a reason, which may be any text of the server.
	{regexp.MustCompile(`^(NOINFO|NOEPOCH|NOTLOCK) `), ""},
	// The texts up to Redis 7.0, and since 7.2.
	{regexp.MustCompile(`The user executing the script can't|ACL failure in script`), "NOPERM"},
	// Matches "Unknown Redis command called from script" and "This Redis command is not allowed from
	// script". Valkey writes its own name there, and servers before Redis 7 write "Lua script".
	{regexp.MustCompile(`(?i)(?:unknown (?:\w+ )?command called|\w+ command is not allowed)` +
		` from (?:lua )?scripts?\b`), NoCommand},
	{regexp.MustCompile(`access a non local key`), HalfMoved},
	// Redis 7 returns this for a script, if the server uses slots.
	{regexp.MustCompile(`do not hash to the same slot`), "CROSSSLOT"},
	{regexp.MustCompile(`max number of clients`), "MAXCLIENTS"},
	{regexp.MustCompile(`unknown command`), Unsupported},
	// Servers before Redis 7 wrap an error inside a script. An error that redis.call raised reads "ERR
	// Error running script (call to f_…): @user_script:12: @user_script: 12: -OOM command not allowed
	// …" if the server rejected the command, and has no dash if the command failed. An error that the
	// script returned reads "@user_script: 12: -OOM command not allowed …".
	{regexp.MustCompile(
		`(?s)^(?:(?:ERR )?Error running script .*)?@user_script: ?\d+: -?([A-Z][A-Z0-9]+)\b`), ""},
	{regexp.MustCompile(`^-?([A-Z][A-Z0-9]+)\b`), ""},
}

// codeOf returns the code of an error message, even of the wrapped errors of old servers.
func codeOf(message string) string {
	for _, known := range codes {
		if found := known.message.FindStringSubmatch(message); found != nil {
			return cmp.Or(known.code, found[len(found)-1])
		}
	}
	return "ERR"
}

// WithCode returns an error message that begins with its code.
func WithCode(message string) string {
	code := codeOf(message)
	if code == "ERR" || strings.HasPrefix(message, code) {
		return message
	}
	return code + " " + strings.TrimPrefix(message, "ERR ")
}

// Unexpected returns the error for a reply that none of our scripts gives. The script did run, so
// its outcome is unknown.
func Unexpected(cause error) *Error {
	return &Error{Class: ClassUnknown, Err: cause,
		Message: printable.Short("unexpected reply: " + cause.Error()),
		Advice: "a proxy between this client and Redis may change replies, or the server is not " +
			"Redis"}
}

// untracked classifies the error of a new connection whose CLIENT TRACKING failed. rueidis opens
// connections when it needs them, and returns the server's reply to CLIENT TRACKING only as text.
// The reply may have a reason other than caching, such as BUSY. rueidis did not send the command
// itself.
func untracked(err error) *Error {
	e := refused(err.Error(), err)
	if e.Class != ClassTemporary {
		e.Class, e.Advice = ClassPermanent, "set rueidis.ClientOption.DisableCache"
	}
	if e.Code == "ERR" {
		e.Code = "" // the message may begin with anything
	}
	return e
}
