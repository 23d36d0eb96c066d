package rlock

import (
	"errors"
	"fmt"
	"time"

	"holdfast/internal/wait"
	"holdfast/lua"
	"holdfast/watchdog"
)

// Decisions. Test for them with [errors.Is]; all errors of this package carry more detail than
// these.
var (
	// ErrNotAcquired: the lock was held by somebody else until the wait was over. The error is a
	// *[HeldError], unless it is [ErrUpgrade]. When a context ended the wait, the error matches
	// both this and the context's error.
	ErrNotAcquired = errors.New("lock not acquired")

	// ErrNotHeld: there is nothing to release. This Hold was released before, or the context's
	// owner has no hold.
	ErrNotHeld = errors.New("lock not held")

	// ErrLost: the lock was held and can no longer be trusted, because its lease ran out, it was
	// force-unlocked, or its key is gone. The error, and the cause of the hold's context, is a
	// *[LostError].
	ErrLost = errors.New("lock lost")

	// ErrReleased: the hold was released. It is the cause of the hold's context, and what
	// [Hold.Err] returns. An attempt with that context fails with an error that matches both
	// ErrReleased and ErrNotAcquired.
	ErrReleased = errors.New("lock released")

	// ErrClosed: the client was closed.
	ErrClosed = wait.ErrClosed

	// ErrOutcomeUnknown: the server did not say in time whether it did what it was asked to. It is
	// cleaned up in the background; if even that fails, the lock is free when its lease ends.
	ErrOutcomeUnknown = errors.New("outcome unknown")

	// ErrUpgrade: the context's owner holds the read lock and asked for the write lock of the same
	// name, for which it would wait for itself. Release the read lock first, or begin with the
	// write lock: a writer may read. The error matches [ErrNotAcquired] as well: test for
	// ErrUpgrade first, because waiting does not help.
	ErrUpgrade = errors.New(
		"a read lock cannot become a write lock: release it first, or begin with the write lock",
	)

	// ErrNotReplicated: fewer replicas than Options.SyncReplicas acknowledged the acquisition in
	// time, and it was undone. The error is a *[ReplicationError].
	ErrNotReplicated = errors.New("not replicated")

	// ErrInvalid: an argument that can never work. Nothing was sent.
	ErrInvalid = errors.New("invalid argument")
)

// errUpgrade makes ErrUpgrade match ErrNotAcquired.
var errUpgrade = fmt.Errorf("%w: %w", ErrNotAcquired, ErrUpgrade)

// Why a lock is lost: the Reason of a [LostError], which matches them.
var (
	// ErrExpired: the deadline passed before a renewal succeeded.
	ErrExpired = watchdog.ErrExpired
	// ErrGone: Redis does not have the lock any more, or somebody else has it.
	ErrGone = watchdog.ErrGone
)

// ServerError is a command that Redis refused or did not answer. Its Class says whether that passes
// by itself, and its Advice what to do if not. Errors of this package wrap it; get at it with
// [errors.As].
type ServerError = lua.Error

// Class is what a [ServerError] means for a caller that wants a lock.
type Class = lua.Class

// The classes of errors.
const (
	// Unknown: the command was sent, or may have been; whether it was executed is not known.
	Unknown = lua.Unknown
	// Temporary: it was not executed, and the reason is expected to pass by itself.
	Temporary = lua.Temporary
	// Permanent: it was not executed, and will not be until somebody changes something: see Advice.
	Permanent = lua.Permanent
)

// HeldError says who has the lock that could not be acquired, and for how long still. It matches
// [ErrNotAcquired].
type HeldError struct {
	Lock  string
	Owner string        // "<client id>:<token>"; "" if no answer came while waiting
	TTL   time.Duration // what is left of the owner's lease, which its watchdog may renew; [NoExpiry] if it never ends
	// Next tells that Owner waits for the lock and comes first: it heads a fair lock's queue, or is
	// a writer that readers step back for. With Owner "" it is readers that had to wait for a
	// writer.
	Next  bool
	cause error // why the wait ended, if it was not its time
}

// Error says what to do about it.
func (e *HeldError) Error() string {
	held := "no answer yet on who holds it"
	switch {
	case e.Next && e.Owner == "":
		held = "readers that waited for a writer come first"
	case e.Next:
		held = e.Owner + " waits for it and comes first"
	case e.Owner != "":
		held = "held by " + e.Owner
	case errors.Is(e.cause, ErrReleased):
		held = "this context belongs to a hold that was released"
	}
	if e.TTL > 0 {
		held += fmt.Sprintf(" for another %v", e.TTL.Round(time.Millisecond))
	}
	switch {
	case e.cause != nil:
		return fmt.Sprintf("not acquired, %v: %s", e.cause, held)
	case e.Next:
		return "not acquired: " + held + "; wait longer"
	default:
		return "not acquired: " + held + "; wait longer or shorten its lease"
	}
}

// Unwrap gives [ErrNotAcquired], and the context's error if a context ended the wait.
func (e *HeldError) Unwrap() []error {
	if e.cause == nil {
		return []error{ErrNotAcquired}
	}
	return []error{ErrNotAcquired, e.cause}
}

// ReplicationError says how many replicas had an acquisition when the time for it was over. It
// matches [ErrNotReplicated].
type ReplicationError struct {
	Lock      string
	Want, Got int
	Waited    time.Duration
}

// Error says what to do about it.
func (re *ReplicationError) Error() string {
	return fmt.Sprintf(
		"%v: %d of %d replicas acknowledged it within %v, and it was undone; are they connected, and not too slow for Options.SyncTimeout?",
		ErrNotReplicated,
		re.Got,
		re.Want,
		re.Waited,
	)
}

// Unwrap gives [ErrNotReplicated].
func (re *ReplicationError) Unwrap() error { return ErrNotReplicated }

// LostError says why a lock is lost. It matches [ErrLost].
type LostError struct {
	Lock   string
	Reason error // ErrExpired, ErrGone, a ForceUnlock of this client, or an unconfirmed earlier release
}

// Error gives the lock and the reason.
func (le *LostError) Error() string {
	return fmt.Sprintf("holdfast: lock %q lost: %v", le.Lock, le.Reason)
}

// Unwrap gives [ErrLost] and the reason.
func (le *LostError) Unwrap() []error { return []error{ErrLost, le.Reason} }

// errForced is the reason of a loss that this client's own ForceUnlock brought about.
var errForced = errors.New("force-unlocked")

// wrap names the lock in an error that leaves the package. It is deferred once per exported
// function.
func wrap(err *error, lock string) {
	if *err == nil {
		return
	}
	var lost *LostError
	if errors.As(*err, &lost) && lost.Lock == lock {
		return // a LostError names its lock
	}
	*err = fmt.Errorf("holdfast: lock %q: %w", lock, *err)
}
