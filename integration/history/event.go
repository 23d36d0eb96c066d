package history

import "time"

// What names what happened.
type What string

// What a process did to a lock, and what the call returned. Each acquisition has one Asked and at
// most one outcome. If it was granted, it may have any number of Valid, and at most one each of
// Lost, Releasing and the outcome of the release.
const (
	Asked   What = "asked"   // Lock or TryLock is called: Locks, Wait, Lease, Root
	Granted What = "granted" // returned a hold, valid at At: Owner, Token, and Until, its deadline
	Refused What = "refused" // returned ErrNotAcquired: Error
	Unknown What = "unknown" // returned an error after which the lock may be held: Error
	Failed  What = "failed"  // returned an error after which nothing is held: Error

	Valid       What = "valid"       // still valid at At or later, with the deadline Until
	Lost        What = "lost"        // the hold ended by itself: Error
	Releasing   What = "releasing"   // Unlock is called
	Released    What = "released"    // returned nil
	NotHeld     What = "notheld"     // returned ErrLost or ErrNotHeld: Error
	Unconfirmed What = "unconfirmed" // returned another error; may be held for a lease: Error
)

// What became of processes and servers, and what the runner saw.
const (
	Started What = "started" // a process started
	Killed  What = "killed"  // it was killed; its locks stay held until their leases end
	Stopped What = "stopped" // it was stopped, and will go on
	Resumed What = "resumed" // it goes on
	Ended   What = "ended"   // it ended by itself: Error is what it left behind

	Fault  What = "fault"  // Fault begins: Processes, Forgets, KeepsTokens, Delays, Spares
	Healed What = "healed" // it is over, but may be felt until Until; one of a name at a time

	Stopping What = "stopping" // processes will be told to stop; from now on calls may be given up

	Queue What = "queue" // the fair lock Name had the queue Owners at some time in At to Until
	Free  What = "free"  // at the end, without users, the lock Name could be acquired at At
	Held  What = "held"  // at the end the lock Name could not be acquired: Error
	Left  What = "left"  // something is left behind: Error
)

// Event is one thing that happened. Fields that are not listed for its What are empty.
type Event struct {
	At   Instant `json:"at"` // after the reply; for Valid: before the hold was checked
	What What    `json:"what"`
	// Process is the one that did it or suffered it. It is unique in the history, also after a
	// restart.
	Process string `json:"process,omitempty"`
	// Number is that of the acquisition, from 1, within the process.
	Number int `json:"number,omitempty"`

	// Locks are all that one call asked for.
	Locks []Lock `json:"locks,omitempty"`
	// Root is the outermost acquisition that this one is nested in; 0 for that one itself.
	Root  int           `json:"root,omitempty"`
	Wait  time.Duration `json:"wait,omitempty"`
	Lease time.Duration `json:"lease,omitempty"` // the watchdog's, if asked for
	// Fixed reports that Lease is not renewed, and so bounds an unreleased hold.
	Fixed bool `json:"fixed,omitempty"`

	Owner string `json:"owner,omitempty"`
	Token int64  `json:"token,omitempty"`
	Error string `json:"error,omitempty"`

	Fault string `json:"fault,omitempty"`
	// Processes are those that the fault concerns; none: all.
	Processes []string `json:"processes,omitempty"`
	// Forgets reports that the servers may forget holds and tokens until the fault is over.
	Forgets bool `json:"forgets,omitempty"`
	// KeepsTokens reports that they forget no tokens.
	KeepsTokens bool `json:"keeps_tokens,omitempty"`
	// Delays reports that commands sent meanwhile are executed when the fault is over.
	Delays bool `json:"delays,omitempty"`
	// Spares are the invariants that the fault must not harm, except for the locks Except.
	Spares []string `json:"spares,omitempty"`
	Except []string `json:"except,omitempty"`

	Name   string   `json:"name,omitempty"`
	Owners []string `json:"owners,omitempty"`
	Until  Instant  `json:"until,omitempty"`
}

// Lock is one lock that was asked for.
type Lock struct {
	Name string `json:"name"`
	Kind Kind   `json:"kind"`
}

// Kind is a kind of lock. A name has one kind, or Read and Write.
type Kind string

// The kinds. Quorum is a RedLock.
const (
	Plain  Kind = "plain"
	Fair   Kind = "fair"
	Fenced Kind = "fenced"
	Read   Kind = "read"
	Write  Kind = "write"
	Quorum Kind = "quorum"
)
