// Package errortype names the types of errors in metrics and traces, for holdfast/otel and for
// program holdfast.
package errortype

import (
	"context"
	"errors"
	"net"

	"holdfast/redlock"
	"holdfast/rlock"
)

// Other is the type of errors without a type of their own, by OpenTelemetry's conventions.
const Other = "_OTHER"

// types has the error types of sentinels. An error may match several, of which the first counts:
// the specific come before the general.
var types = []struct {
	err error
	is  string
}{
	{rlock.ErrExpired, "expired"},
	{rlock.ErrGone, "gone"},
	{rlock.ErrForced, "forced"},
	{rlock.ErrLost, "lost"},
	{rlock.ErrUpgrade, "upgrade"},
	{rlock.ErrDeadlock, "deadlock"},
	{rlock.ErrReentry, "reentry"},
	{rlock.ErrNotReplicated, "not_replicated"},
	{rlock.ErrInvalid, "invalid"},
	{rlock.ErrReleased, "released"},
	{redlock.ErrNoQuorum, "no_quorum"},
	{rlock.ErrNotAcquired, "not_acquired"},
	{rlock.ErrClosed, "closed"},
	{rlock.ErrNotHeld, "not_held"},
	{rlock.ErrOutcomeUnknown, "outcome_unknown"},
	{redlock.ErrNoReply, "no_reply"},
}

// serverTypes has the error types of servers' codes. Others, which a module may make up, become
// "server".
var serverTypes = typesOf("ASK", "BUSY", "CLUSTERDOWN", "CROSSSLOT", "DENIED", "ERR", "HALFMOVED",
	"LOADING", "MASTERDOWN", "MAXCLIENTS", "MISCONF", "MOVED", "NOAUTH", "NOCOMMAND", "NOEPOCH",
	"NOINFO", "NOPERM", "NOPROTO", "NOREPLICAS", "NOSCRIPT", "NOTLOCK", "OOM", "READONLY", "TRYAGAIN",
	"UNBLOCKED", "UNSUPPORTED", "WRONGPASS", "WRONGTYPE")

// typesOf returns the error types of codes.
func typesOf(codes ...string) map[string]string {
	m := make(map[string]string, len(codes))
	for _, code := range codes {
		m[code] = "server_" + code
	}
	return m
}

// Of returns the type of an error of rlock, multilock or redlock, and "" for nil. The documentation
// of holdfastotel.ErrorType lists the types.
func Of(err error) string {
	if err == nil {
		return ""
	}
	for _, t := range types {
		if errors.Is(err, t.err) {
			return t.is
		}
	}
	var (
		server  *rlock.ServerError
		delayed *redlock.DelayedError
	)
	switch {
	case errors.As(err, &delayed):
		return "delayed"
	case errors.As(err, &server):
		return serverType(server)
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.Is(err, context.DeadlineExceeded):
		return "deadline_exceeded"
	}
	return Other
}

// serverType returns the error type of a server's refusal or of a missing reply.
func serverType(err *rlock.ServerError) string {
	if t := serverTypes[err.Code]; t != "" {
		return t
	}
	switch {
	case err.Code != "":
	case err.Class == rlock.ClassTemporary && ungreeted(err):
		return "no_reply"
	case err.Class == rlock.ClassTemporary:
		return "no_connection"
	case err.Class == rlock.ClassUnknown:
		return "no_reply"
	}
	return "server"
}

// ungreeted reports whether a server accepted a connection, and did not reply on it: it hangs. A
// command that waits for such a connection was not sent.
func ungreeted(err error) bool {
	var network *net.OpError
	return errors.As(err, &network) && network.Op != "dial" && network.Timeout()
}
