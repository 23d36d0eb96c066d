// Package status has the exit statuses of the program.
package status

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"

	"holdfast/internal/printable"
)

// The exit statuses, beside 0. Those of sysexits.h keep their meaning.
const (
	Failed      = 1   // the answer is no: not found, not held, not as promised
	Warnings    = 1   // doctor found no more than warnings
	Undecided   = 2   // the demo was not judged
	Errors      = 2   // doctor found errors
	Usage       = 64  // the command line cannot work (EX_USAGE)
	Server      = 74  // the server did not answer, or refused (EX_IOERR)
	NotAcquired = 75  // another holds the lock (EX_TEMPFAIL)
	Lost        = 76  // the lock was lost while the command ran
	TimedOut    = 124 // the command ran for too long, as timeout(1) says it
	Interrupted = 130 // SIGINT, as shells say it
)

// The exit statuses that shells have for a command that cannot be run, or that a signal ends.
const (
	NotExecutable = 126
	NotFound      = 127
	Signal        = 128 // and the number of the signal
)

// Of returns the exit status of a process that has ended, as shells have it.
func Of(s syscall.WaitStatus) int {
	if s.Signaled() {
		return Signal + int(s.Signal())
	}
	return s.ExitStatus()
}

// Error is an error with the exit status that it leads to. Without an error it is silent.
type Error struct {
	Status int
	Err    error
}

// New returns err with an exit status. A nil err prints nothing.
func New(status int, err error) error { return &Error{status, err} }

// Error returns the text of the error.
func (e *Error) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("status %d", e.Status)
	}
	return e.Err.Error()
}

// Unwrap returns the error.
func (e *Error) Unwrap() error { return e.Err }

// Report prints err to w, as one message, and returns its exit status.
func Report(w io.Writer, err error) int {
	if text := Message(err); text != "" {
		Print(w, text)
	}
	return Code(err)
}

// Message returns the text of an error that is to be printed; "" if it is silent, or nil.
func Message(err error) string {
	var e *Error
	if err == nil || errors.As(err, &e) && e.Err == nil {
		return ""
	}
	return err.Error()
}

// Code returns the exit status of an error: 0 for nil, [Failed] if err has none.
func Code(err error) int {
	var e *Error
	switch {
	case err == nil:
		return 0
	case errors.As(err, &e):
		return e.Status
	}
	return Failed
}

// Print prints a message of the program to w.
func Print(w io.Writer, text string) {
	_, _ = fmt.Fprintln(w, "holdfast:", printable.Lines(Text(text)))
}

// Text returns a text of the library for users of the program: without the prefix that all messages
// have, and with the flag where the library names a field.
func Text(s string) string {
	s = strings.TrimPrefix(s, "holdfast: ")
	return flags.Replace(s)
}

// flags are what a user of the program sets where the library names a field.
var flags = strings.NewReplacer(
	"RootCAs and ServerName in rueidis.ClientOption.TLSConfig", "--cacert",
	"rueidis.ClientOption.TLSConfig", "--tls",
	"rueidis.ClientOption.Username and rueidis.ClientOption.Password", "--user and REDISCLI_AUTH",
	"rueidis.ClientOption.Password", "REDISCLI_AUTH or --password-file",
	"set rueidis.ClientOption.AlwaysRESP2 and rueidis.ClientOption.DisableCache",
	"use a server with RESP3",
	"leave rueidis.ClientOption.DisableRetry at false, and grant", "grant",
	"because otherwise rueidis", "because otherwise holdfast",
	"or let rueidis find it through Sentinel", "or pass --sentinel",
	"set rueidis.ClientOption.ConnLifetime, so that connections follow the address",
	"start the command again",
	"rueidis.ClientOption.DisableCache", "no cache",
	"set redlock.Options.FsyncAlways", "pass --fsync-always",
	", set a smaller redlock.Options.MaxLease in all processes, or set FsyncAlways if the node runs "+
		"with appendfsync always",
	", or pass --fsync-always if all servers run with appendfsync always",
	"; check the node, or raise redlock.Options.NodeTimeout", "; check the node",
	", or set Options.HandOver to HandOverNone", "",
	"set Options.SyncReplicas to 1", "pass --sync-replicas 1",
	"Options.SyncReplicas", "--sync-replicas",
	", or raise Options.SyncTimeout", "",
	"Options.WatchdogLease", "--lease")
