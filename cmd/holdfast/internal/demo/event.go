package demo

import "time"

// kind says what happened to a process.
type kind string

const (
	ready    kind = "ready"    // connected; its At means nothing, because the clock starts later
	waiting  kind = "waiting"  // asks for the lock
	queued   kind = "queued"   // is known to wait: who asks from now on has to come later
	entered  kind = "entered"  // holds the lock
	nested   kind = "nested"   // took the lock once more
	unnested kind = "unnested" // gave that level back
	leaving  kind = "leaving"  // is about to unlock
	left     kind = "left"     // has unlocked
	gaveUp   kind = "gave up"  // did not get the lock in time
	failed   kind = "failed"   // something went wrong, and the process ends
	killed   kind = "killed"   // the stage sent it SIGKILL
	died     kind = "died"     // a server of the scene's own, which Process names, is gone
	ended    kind = "ended"    // the process is gone; Error says how, if it did not simply end
)

// event is one line that a process reports, or one that the stage adds.
type event struct {
	At      time.Duration `json:"at"` // since the clock started
	Kind    kind          `json:"kind"`
	Process string        `json:"process"`
	Lock    string        `json:"lock"`

	// Owner is who holds the lock: the process itself if it entered, another one if it gave up.
	Owner string `json:"owner,omitempty"`
	// Found is what was in the marker of the section: the process that is inside, by its own account. It should be
	// nobody when a section is entered, and the process itself when it leaves.
	Found string `json:"found,omitempty"`
	// Shared is whether others may be inside as well, when the process entered.
	Shared bool `json:"shared,omitempty"`
	// Count is how many levels Redis says the process holds, when it nested.
	Count int `json:"count,omitempty"`
	// TTL is for how long the lock is still held, when the process gave up.
	TTL time.Duration `json:"ttl,omitempty"`
	// Sum is what a transfer found in its accounts together, when the process leaves.
	Sum   int64  `json:"sum,omitempty"`
	Error string `json:"error,omitempty"`
}

// clock is the time since the demo started, the same in all its processes. Only one reading of the wall clock is
// shared; from then on each process counts on its monotonic clock, so that a step of the wall clock in between cannot
// make sections overlap that did not.
type clock struct {
	origin time.Time // has a monotonic reading
}

// clockSince returns the clock that started at the given wall-clock time.
func clockSince(start time.Time) clock {
	now := time.Now()
	return clock{origin: now.Add(-now.Round(0).Sub(start.Round(0)))} // Round strips the monotonic reading
}

func (c clock) now() time.Duration { return time.Since(c.origin) }
