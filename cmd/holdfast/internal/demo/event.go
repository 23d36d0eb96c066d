package demo

import "time"

// kind is what happened to a process.
type kind string

const (
	ready   kind = "ready"   // connected; At is meaningless, because the clock starts later
	waiting kind = "waiting" // asks for the lock
	queued  kind = "queued"  // is in the queue: later contenders must come after it
	entered kind = "entered" // holds the lock
	nested  kind = "nested"  // acquired one more level
	leaving kind = "leaving" // is about to unlock
	left    kind = "left"    // has unlocked
	gaveUp  kind = "gave-up" // did not acquire the lock in time
	failed  kind = "failed"  // something went wrong, and the process ends
	killed  kind = "killed"  // the stage sent it SIGKILL
	died    kind = "died"    // the scene's server that Process names is gone
	ended   kind = "ended"   // the process is gone; Error is set unless it ended as it should
)

// event is a line that a process reports, or one that the stage adds.
type event struct {
	At      time.Duration `json:"at"` // since the clock started
	Kind    kind          `json:"kind"`
	Process string        `json:"process"`
	Lock    string        `json:"lock"`

	// Owner is the owner of the lock: the process itself if it entered, another if it gave up. When
	// the process is ready it is its client.
	Owner string `json:"owner,omitempty"`
	// Found are processes that were inside too and should not have been, by their own markers, when
	// the process entered and when it leaves.
	Found []string `json:"found,omitempty"`
	// Shared reports whether others may be inside too, when the process entered.
	Shared bool `json:"shared,omitempty"`
	// TTL is how long the lock is still held, when the process gave up.
	TTL   time.Duration `json:"ttl,omitempty"`
	Error string        `json:"error,omitempty"`
	// Until is the deadline of its hold, when the process leaves.
	Until time.Duration `json:"until,omitempty"`
	// Stall is for how long the process has stood still so far, at most.
	Stall time.Duration `json:"stall,omitempty"`
}

// name returns what cues and promises call the event.
func (e event) name() string { return e.Process + " " + string(e.Kind) }

// clock counts the time since the demo started, the same in all its processes. They share only one
// reading of the wall clock. From then on each counts on its monotonic clock, so that a step of the
// wall clock cannot make sections overlap that did not.
type clock struct {
	origin time.Time // has a monotonic reading
}

// clockSince returns the clock that started at the given wall-clock time.
func clockSince(start time.Time) clock {
	now := time.Now()
	// Round strips the monotonic reading
	return clock{origin: now.Add(-now.Round(0).Sub(start.Round(0)))}
}

func (c clock) now() time.Duration { return c.at(time.Now()) }

func (c clock) at(t time.Time) time.Duration { return t.Sub(c.origin) }
