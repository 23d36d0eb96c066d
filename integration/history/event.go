package history

import "time"

// What happened.
type What string

// What a process did to a lock and was told. Each acquisition has one Asked and at most one of the answers to it; if it was
// granted, it may have any number of Valid, and at most one each of Lost, Releasing and what came of that.
const (
	Asked   What = "asked"   // Lock or TryLock is called: Locks, Wait, Lease, Root
	Granted What = "granted" // it returned a hold, which was valid at At: Owner, Token, and Until, its deadline
	Refused What = "refused" // it returned ErrNotAcquired: Error
	Unknown What = "unknown" // it returned an error after which nobody knows whether the lock was taken: Error
	Failed  What = "failed"  // it returned an error that says that nothing was taken: Error

	Valid       What = "valid"       // the hold was still valid at At or after, and its deadline is Until
	Lost        What = "lost"        // the hold has ended by itself: Error
	Releasing   What = "releasing"   // Unlock is called
	Released    What = "released"    // it returned nil
	NotHeld     What = "notheld"     // it returned ErrLost or ErrNotHeld: Error
	Unconfirmed What = "unconfirmed" // it returned any other error, so the lock may be held until its lease ends: Error
)

// What became of processes and servers, and what the runner saw.
const (
	Started What = "started" // a process is there
	Killed  What = "killed"  // it was killed; what it held is held until the lease ends
	Stopped What = "stopped" // it was stopped, and will go on
	Resumed What = "resumed" // it goes on
	Ended   What = "ended"   // it has ended by itself: Error is what it has left behind

	Fault  What = "fault"  // the fault named Fault begins: Processes, Forgets, KeepsTokens, Delays
	Healed What = "healed" // and is over, but may be felt until Until; at most one fault of a name goes on at a time

	Stopping What = "stopping" // all processes are about to be told to stop: from now on calls may be given up

	Queue What = "queue" // the queue of the fair lock Name was Owners, head first, at some time from At to Until
	Free  What = "free"  // at the end, when nobody wants it any more, the lock Name could be taken; At is when
	Taken What = "taken" // at the end the lock Name could not be taken: Error
	Left  What = "left"  // something is left behind: Error
)

// Event is one thing that happened. Fields that What does not name are empty.
type Event struct {
	At      Instant `json:"at"` // for an answer: after it came; for Valid: before the hold was asked
	What    What    `json:"what"`
	Process string  `json:"process,omitempty"` // who did it or whom it befell; unique in the history, also after a restart
	Number  int     `json:"number,omitempty"`  // of the acquisition, from 1, within the process

	Locks []Lock        `json:"locks,omitempty"` // all of them, if there are several
	Root  int           `json:"root,omitempty"`  // the acquisition that this one is nested in, the outermost; 0 for that one itself
	Wait  time.Duration `json:"wait,omitempty"`
	Lease time.Duration `json:"lease,omitempty"` // that of the watchdog, if it was asked for
	Fixed bool          `json:"fixed,omitempty"` // Lease is not renewed, so it bounds the hold of one that nobody releases

	Owner string `json:"owner,omitempty"`
	Token int64  `json:"token,omitempty"`
	Error string `json:"error,omitempty"`

	Fault       string   `json:"fault,omitempty"`
	Processes   []string `json:"processes,omitempty"`    // whom the fault concerns; none: all
	Forgets     bool     `json:"forgets,omitempty"`      // the servers may forget holds and tokens from now until it is over
	KeepsTokens bool     `json:"keeps_tokens,omitempty"` // but no tokens
	Delays      bool     `json:"delays,omitempty"`       // what was said to the servers meanwhile is done when it is over
	Name        string   `json:"name,omitempty"`
	Owners      []string `json:"owners,omitempty"`
	Until       Instant  `json:"until,omitempty"`
}

// Lock says what was asked for.
type Lock struct {
	Name string `json:"name"`
	Kind Kind   `json:"kind"`
}

// Kind of lock. A name is used for one kind, or for Read and Write.
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
