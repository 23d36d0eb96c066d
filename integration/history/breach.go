package history

import (
	"cmp"
	"fmt"
	"time"
)

// The invariants.
const (
	Exclusion    = "exclusion"
	Linearizable = "linearizable"
	Fences       = "fences"
	Fairness     = "fairness"
	Waits        = "waits"
	WakeUps      = "wake-ups"
	Progress     = "progress"
	Kept         = "kept"
	Answers      = "answers"
	Remains      = "remains"
)

// Invariants are all of them.
var Invariants = []string{Exclusion, Linearizable, Kept, Answers, Fences, Fairness, Waits, WakeUps,
	Progress, Remains}

// Breach is an invariant that did not hold.
type Breach struct {
	Invariant string
	At        Instant
	Text      string
	Between   []*Acquisition
}

// String returns the breach in one line.
func (b Breach) String() string { return fmt.Sprintf("%s: %s", b.Invariant, b.Text) }

// Bounds are the tolerances of a run.
type Bounds struct {
	// Lease is the longest lease in the run, that of the watchdog included.
	Lease time.Duration
	// Command is the longest time for which a command is repeated before its caller learns that the
	// outcome is unknown.
	Command time.Duration
	// Slack is how late anything may be on a busy machine.
	Slack time.Duration
	// Brief is the slack where no fault is near. Defaults to Slack.
	Brief time.Duration
	// WakeUp is how soon a waiter must have a lock that became free.
	WakeUp time.Duration
	// HandsOver reports whether plain and fenced locks may be handed over. Then a waiter may be
	// granted the lock after it left.
	HandsOver bool
	// Strict also judges refusals without wait: another owner must have held the lock, or been
	// about to.
	Strict bool
}

// brief returns Brief or its default.
func (b Bounds) brief() time.Duration { return cmp.Or(b.Brief, b.Slack) }

// Verdict is the result of all checks.
type Verdict struct {
	Breaches []Breach
	// Expected are overlaps and tokens explained by a server that forgot. They are no breaches:
	// each ended within one lease.
	Expected []Breach
	// Judged counts the cases in which each invariant was checked. An invariant without cases has
	// not been shown.
	Judged map[string]int
}
