package demo

import (
	"fmt"
	"strings"
	"time"
)

// slowest is the longest wake-up that can have come by a message. A later one came when a lease or
// a waiter's own timer ended.
const slowest = time.Second

// slowestVote is the same for a lock over a quorum. With two servers dead it needs all others at
// once, and a contender that fails retries later and later, up to a second or two.
const slowestVote = 3 * time.Second

// verdict is the result of a demo.
type verdict struct {
	sections int
	overlaps int
	counter  int64 // the sum of the counters
	wakeUp   time.Duration
	takeover time.Duration // how long after SIGKILL; 0 if there was none
	faults   []string      // besides overlaps and the counter
	broken   int           // the overlaps that no stall excuses
	stall    time.Duration // the longest, of any process
}

// judge judges the whole history, which is ordered by time.
func judge(scenes []scene, history []event, counter int64) verdict {
	all := sections(history)
	v := verdict{sections: len(all), overlaps: overlaps(all), counter: counter,
		broken: broken(all)}
	var parts []part
	for _, s := range scenes {
		parts = append(parts, s.cast...)
	}
	b := newBoard(parts)
	for _, e := range history {
		v.stall = max(v.stall, e.Stall)
		h := b.apply(e)
		if e.Kind == entered && h.from.killed {
			v.takeover = h.took
		}
		if e.Error != "" {
			v.faults = append(v.faults, fmt.Sprintf("%s: %s: %s", e.Lock, e.Process, e.Error))
		}
	}
	for _, o := range overtakings(history) {
		v.faults = append(v.faults,
			fmt.Sprintf("%s: %s got in before %s, who was queued already", o.lock, o.later,
				o.first))
	}
	for _, s := range scenes {
		var own []event
		for _, e := range history {
			if e.Lock == s.lock {
				own = append(own, e)
			}
		}
		for _, fault := range s.verdict(own) {
			v.faults = append(v.faults, s.lock+": "+fault)
		}
	}
	v.wakeUp = b.wakeUp
	if v.wakeUp > slowest {
		v.faults = append(v.faults,
			fmt.Sprintf("a waiter was woken only %s after the unlock", brief(v.wakeUp)))
	}
	if b.vote > slowestVote {
		v.faults = append(v.faults,
			fmt.Sprintf("a quorum granted the lock only %s after the unlock", brief(b.vote)))
	}
	return v
}

// ok reports whether everything went as promised.
func (v verdict) ok() bool {
	return v.overlaps == 0 && v.counter == int64(v.sections) && len(v.faults) == 0
}

// stoodStill reports whether what went wrong may be due to a machine that stood still, and says
// nothing about the locks.
func (v verdict) stoodStill() bool {
	return !v.ok() && v.broken == 0 && v.stall >= stillness
}

// String returns the last line of the demo. It fits in 80 columns if everything went well.
func (v verdict) String() string {
	said := []string{
		fmt.Sprintf("demo: %d sections", v.sections),
		fmt.Sprintf("%d overlaps", v.overlaps),
	}
	counter := fmt.Sprintf("counter %d", v.counter)
	if v.counter != int64(v.sections) {
		counter += fmt.Sprintf(" instead of %d", v.sections)
	}
	said = append(said, counter)
	if v.wakeUp > 0 {
		said = append(said, "max wake-up "+brief(v.wakeUp))
	}
	if v.takeover > 0 {
		said = append(said, "takeover "+brief(v.takeover))
	}
	switch n := len(v.faults); n {
	case 0:
	case 1:
		said = append(said, "1 fault")
	default:
		said = append(said, fmt.Sprintf("%d faults", n))
	}
	return strings.Join(said, ", ")
}
