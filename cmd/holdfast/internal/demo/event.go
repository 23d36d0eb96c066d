package demo

import "time"

// kind is what happened to a process.
type kind string

const (
	ready   kind = "ready"   // connected; the clock has not started
	waiting kind = "waiting" // asks for the lock
	queued  kind = "queued"  // is in the queue: later contenders must come after it
	entered kind = "entered" // holds the lock
	nested  kind = "nested"  // acquired one more level
	leaving kind = "leaving" // is about to unlock
	left    kind = "left"    // has unlocked
	served  kind = "served"  // got the result that By has stored
	gaveUp  kind = "gave-up" // did not acquire the lock in time
	failed  kind = "failed"  // something went wrong, and the process ends
	killed  kind = "killed"  // the stage sent it SIGKILL
	died    kind = "died"    // the scene's server that Process names is gone
	ended   kind = "ended"   // the process is gone; Error is set unless it ended as it should
)

// event is a line that a process reports, or one that the stage adds.
type event struct {
	At      time.Duration // since the clock started
	Kind    kind
	Process string
	Lock    string
	Owner   string        // of the lock: itself if it entered, another if it gave up
	By      string        // the process whose result it got
	Client  string        // its id, when ready
	Found   []string      // who was inside by the markers and should not have been
	Shared  bool          // others may be inside too
	TTL     time.Duration // how long the lock is still held, when it gave up
	Until   time.Duration // the deadline of its hold, when it leaves
	Stall   time.Duration // how long the process has stood still so far, at most
	Error   string
}

// name returns what cues and promises call the event.
func (e event) name() string { return e.Process + " " + string(e.Kind) }

// since returns start for [time.Since]. Processes share only this reading of the wall clock. Then
// each counts on its monotonic clock, so that a step of the wall clock makes no sections overlap.
func since(start time.Time) time.Time {
	now := time.Now()
	return now.Add(-now.Round(0).Sub(start.Round(0))) // Round strips the monotonic reading
}
