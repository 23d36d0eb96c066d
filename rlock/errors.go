package rlock

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"holdfast/internal/compose"
	"holdfast/internal/owner"
	"holdfast/internal/printable"
	"holdfast/internal/rediserr"
	"holdfast/internal/wait"
	"holdfast/lua"
	"holdfast/watchdog"
)

// Errors that callers may want to distinguish. Test for them with [errors.Is], because returned
// errors add details.
var (
	// ErrNotAcquired reports that another owner held the lock, or came first, until the wait ended.
	// [ErrUpgrade] and [ErrDeadlock] match ErrNotAcquired as well, and report that waiting does not
	// help. The error is a *[HeldError] or a *redlock.QuorumError, or matches ErrUpgrade or
	// ErrDeadlock. If a context ended the wait, the error also matches the error of the context.
	ErrNotAcquired = errors.New("lock not acquired")

	// ErrNotHeld reports that this hold was released before, or that the owner holds nothing.
	ErrNotHeld = errors.New("lock not held")

	// ErrLost reports that a held lock can no longer be trusted, because its lease ended, its key is
	// gone, or somebody force-unlocked the lock. The error, and the cause of the context, is a
	// *[LostError].
	ErrLost = errors.New("lock lost")

	// ErrReleased reports that the hold was released. ErrReleased is the cause of the context of the
	// hold, and the result of [Hold.Err]. A call with that context fails with ErrReleased and
	// ErrNotAcquired.
	ErrReleased = errors.New("lock released")

	// ErrClosed reports that the client was closed.
	ErrClosed = wait.ErrClosed

	// ErrOutcomeUnknown reports that Redis did not confirm a command in time. The client undoes or
	// repeats the command in the background. If that fails as well, the lock is free when its lease
	// ends.
	ErrOutcomeUnknown = errors.New("outcome unknown")

	// ErrUpgrade reports that the owner holds the read lock and asked for the write lock of the same
	// name. The owner would wait for itself. Release the read lock first, or begin with the write
	// lock, because a writer may read. The error also matches [ErrNotAcquired], so check for
	// ErrUpgrade first, and do not try again.
	ErrUpgrade = errors.New("a read lock cannot become a write lock; release the read lock first, " +
		"or begin with the write lock")

	// ErrNotReplicated reports that fewer replicas than Options.SyncReplicas acknowledged the
	// acquisition in time. The client has undone the acquisition. The error is a *[ReplicationError].
	ErrNotReplicated = errors.New("not replicated")

	// ErrInvalid reports an argument that can never work. The client has sent nothing.
	ErrInvalid = compose.ErrInvalid
)

var invalid = compose.Invalid

// errUpgrade makes ErrUpgrade match ErrNotAcquired.
var errUpgrade = fmt.Errorf("%w: %w", ErrNotAcquired, ErrUpgrade)

// The reasons for a loss. The Reason of a [LostError] may match one of them.
var (
	// ErrExpired reports that the deadline passed before a renewal succeeded.
	ErrExpired = watchdog.ErrExpired
	// ErrGone reports that Redis no longer has the lock, or that another owner has the lock.
	ErrGone = watchdog.ErrGone
	// ErrForced reports a [Lock.ForceUnlock] of the same client. Other clients get [ErrGone].
	ErrForced = errors.New("force-unlocked")
)

// ServerError describes a command that Redis rejected or did not reply to. Find a ServerError in an
// error with [errors.As]. The fields are
//
//	Class   Class  // whether the cause passes without help
//	Code    string // the error code of Redis, such as READONLY, or ""
//	Message string // the reply of Redis, safe to print
//	Advice  string // what to do about the cause, or ""
//	Err     error  // the cause, or nil
type ServerError = rediserr.Error

// Class says how a caller should treat a [ServerError].
type Class = rediserr.Class

// The classes of errors.
const (
	// ClassUnknown means that Redis may have executed the command.
	ClassUnknown = rediserr.ClassUnknown
	// ClassTemporary means that Redis did not execute the command, and that a later attempt may
	// succeed.
	ClassTemporary = rediserr.ClassTemporary
	// ClassPermanent means that Redis did not execute the command, and that no attempt succeeds until
	// you fix the cause. See Advice.
	ClassPermanent = rediserr.ClassPermanent
)

// HeldError reports who holds the lock, and for how much longer. The error matches
// [ErrNotAcquired].
type HeldError struct {
	Lock  string
	Owner string // "<client id>:<number>"; "" if Redis has not replied
	// TTL is the rest of the lease of Owner, which a watchdog may renew, or [NoExpiry].
	TTL time.Duration
	// Next reports that Owner waits for the lock and comes first. Owner is then the first in the queue
	// of a fair lock, or a writer that readers wait for. If Owner is "", readers that waited for a
	// writer come first.
	Next bool
	// SameProcess reports that Owner belongs to this process, and SameClient that Owner belongs to the
	// same client. Then the holder may be your own caller.
	SameProcess, SameClient bool
	// HolderKind is the kind of lock that Owner holds, such as "fair". HolderKind is "" for another
	// process, and after an attempt without a wait unless Options.Debug is set, because the search
	// takes time.
	HolderKind string
	// Holder is the process of Owner, or zero if unknown. A waiter asks Redis for the process in the
	// background after a second of waiting. An attempt without a wait only knows what earlier waiters
	// of its client have learned. Clients of Redisson and clients with Options.Anonymous are unknown.
	Holder Identity
	// AcquiredAt is the file and line where Owner acquired the lock, or "" without Options.Debug.
	AcquiredAt string

	kind  string // of the wanted lock, if HolderKind differs; else ""
	busy  bool   // another call of this owner is still under way
	cause error  // why the wait ended; nil if the time was over
}

// Error names the holder and says what to do.
func (e *HeldError) Error() string {
	held := "timed out before Redis reported the holder"
	switch {
	case e.busy:
		held = "another call of the same owner still waits for it"
	case e.Next && e.Owner == "":
		held = "readers that waited for a writer come first"
	case e.Next:
		held = e.who() + " waits for it and comes first"
	case e.kept():
		held = "released by " + e.who() + ", but kept by rlock.AtLeast"
	case e.Owner != "":
		held = e.holder()
	case errors.Is(e.cause, ErrReleased):
		held = "ctx belongs to a released hold; pass a context that outlasts the hold"
	case errors.Is(e.cause, ErrLost):
		held = "ctx belongs to a lost hold"
	case errors.Is(e.cause, ErrClosed):
		held = "ctx belongs to a hold of a closed client"
	}
	switch {
	case e.TTL > 0:
		held += fmt.Sprintf(" for another %v", e.TTL.Round(time.Millisecond))
	case e.stuck():
		held += ", and never expires"
	}
	switch {
	case e.cause != nil:
		return fmt.Sprintf("not acquired, %s: %s%s", withoutPrefix(e.cause), held, e.advice())
	case e.stuck():
		return "not acquired: " + held + e.advice()
	}
	return "not acquired: " + held + "; retry later, or use a longer wait" + e.advice()
}

// holder describes the holder.
func (e *HeldError) holder() string {
	if !e.SameProcess {
		return "held by " + e.who()
	}
	more := []string{printable.Short(e.Owner)}
	if !e.SameClient {
		more = append(more, "through another client")
	}
	if e.kind != "" {
		more = append(more, fmt.Sprintf("as a %s lock, not a %s one", e.HolderKind, e.kind))
	}
	if e.AcquiredAt != "" {
		more = append(more, "acquired at "+e.AcquiredAt)
	}
	return fmt.Sprintf("held by this process (%s)", strings.Join(more, ", "))
}

// who names the owner, and also its process if that is another process and known.
func (e *HeldError) who() string {
	owner := printable.Short(e.Owner) // anybody may have written the name
	if process := e.Holder.String(); process != "" && !e.SameProcess {
		return fmt.Sprintf("%s (%s)", owner, process)
	}
	return owner
}

// kept reports that the lock was released, but that AtLeast keeps it taken.
func (e *HeldError) kept() bool { return owner.KindOf(e.Owner) == owner.Kept && !e.Next }

// stuck reports that the lock never expires. Waiting then helps only if Owner releases the lock.
func (e *HeldError) stuck() bool { return e.TTL == NoExpiry && e.Owner != "" && !e.Next }

// advice says what to do if the caller may wait for itself, or if the lock never expires.
func (e *HeldError) advice() string {
	switch {
	case e.stuck() && !e.SameProcess:
		return `; find out who wrote the key, and if it is a lock, release it with "holdfast unlock"`
	case !e.SameProcess || e.Next || e.kept():
		return ""
	case !e.SameClient:
		return "; if one of your callers holds it, use that client, and pass its hold.Context() down"
	case e.kind != "":
		return "; use one kind of lock for one name"
	case e.AcquiredAt == "":
		return "; if one of your callers holds it, pass its hold.Context() down to this call, or set " +
			"Options.Debug to find the caller"
	}
	return "; if one of your callers holds it, pass its hold.Context() down to this call"
}

// newHeldError returns the error of a call for l while another owner holds l. With find,
// newHeldError searches for the acquisition of that owner in this process.
func newHeldError(l *Lock, h lua.Holder, find bool) *HeldError {
	e := &HeldError{Lock: l.name, Owner: h.Owner, TTL: h.TTL, Next: h.Next}
	if c := clientOf(h.Owner); c != nil {
		e.SameProcess, e.SameClient, e.Holder = true, c == l.client, c.identity
		if !find {
			return e
		}
		if a := c.acquisition(h.Owner); a != nil {
			e.HolderKind, e.AcquiredAt = a.lock.kindName(), a.site().String()
			if a.lock.family != l.family {
				e.kind = l.kindName()
			}
		}
		return e
	}
	e.Holder, _ = l.client.directory.find(h.Owner)
	return e
}

// Unwrap returns [ErrNotAcquired], and the error of the context if a context ended the wait.
func (e *HeldError) Unwrap() []error {
	if e.cause == nil {
		return []error{ErrNotAcquired}
	}
	return []error{ErrNotAcquired, e.cause}
}

// ReplicationError reports how many replicas acknowledged an acquisition in time. The error matches
// [ErrNotReplicated].
type ReplicationError struct {
	Lock      string
	Want, Got int
	Waited    time.Duration
}

// Error gives the numbers and says what to check.
func (re *ReplicationError) Error() string {
	return fmt.Sprintf("%v: only %d of %d replicas acknowledged within %v, so the lock was "+
		"released; check that the replicas are connected, or raise Options.SyncTimeout",
		ErrNotReplicated, re.Got, re.Want, re.Waited.Round(time.Millisecond))
}

// Unwrap returns [ErrNotReplicated].
func (re *ReplicationError) Unwrap() error { return ErrNotReplicated }

// LostError reports why a lock was lost. The error matches [ErrLost].
type LostError struct {
	Lock string
	// Reason matches ErrExpired, ErrGone or ErrForced, or is an unconfirmed release.
	Reason error
}

// Error returns the lock and the reason.
func (le *LostError) Error() string {
	return fmt.Sprintf("holdfast: lock %q: lost: %s", le.Lock, withoutPrefix(le.Reason))
}

// withoutPrefix returns the text of an inner error without the prefix, because the outer error has
// the prefix.
func withoutPrefix(err error) string {
	return strings.ReplaceAll(fmt.Sprint(err), "holdfast: ", "")
}

// Unwrap returns [ErrLost] and the reason.
func (le *LostError) Unwrap() []error { return []error{ErrLost, le.Reason} }

// errBusy reports that another call has locked the session of the owner for too long. The caller
// has not sent its command. The client sends a release in the background instead.
var errBusy = fmt.Errorf("%w: another call of the same owner still waits for Redis; retry later",
	ErrOutcomeUnknown)

// wrap adds the name of the lock to an error, once per exported function, unless the error names
// the lock already.
func wrap(err *error, lock string) {
	//nolint:errorlint // one inside may be that of a context
	if lost, ok := (*err).(*LostError); *err == nil || ok && lost.Lock == lock {
		return // a LostError names its lock already
	}
	*err = fmt.Errorf("holdfast: lock %q: %w", lock, *err)
}
