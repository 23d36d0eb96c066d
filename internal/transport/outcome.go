package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"

	"github.com/redis/rueidis"

	"holdfast/internal/rediserr"
)

// State is the outcome of a command.
type State uint8

// The outcomes of a command. [StateOf] returns one after Refused if it may have been executed.
const (
	Executed    State = iota // the server executed it
	Refused                  // the server did not execute it
	Unconfirmed              // its connection was lost: it was executed, or never will be
	Abandoned                // nobody waits for its reply: it may be executed at any time
	Detached                 // its caller left: a callback gets the outcome
	NotSent                  // its caller would have had to dial first
)

// StateOf returns the outcome of a command with the given error.
func StateOf(err error) State {
	switch {
	case err == nil:
		return Executed
	case rediserr.ClassOf(err) != rediserr.ClassUnknown:
		return Refused
	case errors.Is(Unexplained(err), ErrNoReply): // rueidis gave up, or the caller did
		return Abandoned
	}
	return Unconfirmed
}

// Lost reports whether a command may have been executed, but its connection was lost.
func Lost(err error) bool { return connectionLost(err) && StateOf(err) == Unconfirmed }

// connectionLost reports whether err says that a connection was lost, without a reply to the
// command.
func connectionLost(err error) bool {
	return err != nil && rediserr.ClassOf(err) == rediserr.ClassUnknown &&
		(errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
			errors.Is(err, io.ErrClosedPipe) || errors.Is(err, net.ErrClosed) ||
			errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
			errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, rueidis.ErrClosing))
}

// ErrNoReply is the error of a command whose caller left before the reply.
var ErrNoReply = &rediserr.Error{Class: rediserr.ClassUnknown,
	Message: "no reply from Redis in time",
	Advice:  "is the server up, is it busy, and is rueidis.ClientOption.TLSConfig right for it?"}

// NoReply returns [ErrNoReply], with the error of the try before, which says more, if there is one.
func NoReply(before error) error {
	if before == nil || errors.Is(before, ErrNoReply) {
		return ErrNoReply
	}
	return fmt.Errorf("%w; before that: %w", ErrNoReply, before)
}

// ErrNotSent is the error of a command whose caller left before there was room to send it.
var ErrNotSent = &rediserr.Error{Class: rediserr.ClassTemporary,
	Message: "not sent: too many are under way"}

// Unexplained replaces errors about deadlines: of other commands on the connection, or rueidis's.
func Unexplained(err error) error {
	if (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)) &&
		rediserr.ClassOf(err) == rediserr.ClassUnknown {
		return ErrNoReply
	}
	return err
}

// unreached returns the error of a command that was not sent, because the server closed the
// connection before that, or did not greet.
func unreached(err error) error {
	e := &rediserr.Error{Class: rediserr.ClassTemporary,
		Message: "no connection: " + err.Error(), Err: err,
		Advice: "the server or a proxy closed the connection before the command was sent; " +
			"raise maxclients if the server is full, or set rueidis.ClientOption.TLSConfig if it wants TLS"}
	var cause *rediserr.Error
	if errors.As(err, &cause) {
		e.Message = "no connection: " + cause.Message
	}
	switch {
	case cause != nil && errors.Is(err, rueidis.ErrClosing):
		e.Message, e.Advice = cause.Message, cause.Advice
	case errors.Is(err, os.ErrDeadlineExceeded):
		e.Advice = "the server accepts connections but does not reply; check if it is stopped or busy"
	}
	return e
}
