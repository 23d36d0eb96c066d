package history

import (
	"cmp"
	"fmt"
	"time"
)

// The invariants that are checked.
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
var Invariants = []string{Exclusion, Linearizable, Kept, Answers, Fences, Fairness, Waits, WakeUps, Progress, Remains}

// Breach is an invariant that did not hold.
type Breach struct {
	Invariant string
	At        Instant
	Text      string
	Between   []*Acquisition
}

// String is one line.
func (b Breach) String() string { return fmt.Sprintf("%s: %s", b.Invariant, b.Text) }

// Bounds are what a run allows for.
type Bounds struct {
	// Lease is the longest lease in the run, that of the watchdog included.
	Lease time.Duration
	// Command is the longest time for which a command is repeated before its caller is told that its outcome is unknown.
	Command time.Duration
	// Slack is how late anything may be on a machine that is busy.
	Slack time.Duration
	// Brief is the same where no fault is near. Defaults to Slack.
	Brief time.Duration
	// WakeUp is how soon somebody who waits for a lock must have it when it has become free.
	WakeUp time.Duration
	// HandsOver says that some hand plain and fenced locks over: then one who waits may be given the lock when it has left.
	HandsOver bool
	// Strict also judges refusals without wait: somebody else must have had the lock, or have been about to.
	Strict bool
}

// brief is Brief, or what it stands for.
func (b Bounds) brief() time.Duration { return cmp.Or(b.Brief, b.Slack) }

// Verdict is what came of all checks.
type Verdict struct {
	Breaches []Breach
	// Expected are overlaps and tokens that a server which forgot accounts for. They are no breaches: each was over within
	// one lease.
	Expected []Breach
	// Judged is how many cases each invariant was tried on. An invariant that was tried on none has not been shown.
	Judged map[string]int
}
