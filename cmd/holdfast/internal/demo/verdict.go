package demo

import (
	"fmt"
	"math"
	"strconv"
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
	all := stays(history)
	v := verdict{sections: len(all), overlaps: overlaps(all), counter: counter, broken: broken(all)}
	story := newStory(scenes, func(string) {})
	times := map[string]int{} // by lock and kind
	for _, e := range history {
		if e.Kind == gaveUp {
			v.judgeHolder(story, e)
		}
		story.tell(e)
		times[e.Lock+" "+string(e.Kind)]++
		v.stall = max(v.stall, e.Stall)
		if e.Error != "" {
			v.fault("%s: %s: %s", e.Lock, e.Process, e.Error)
		}
	}
	for _, o := range overtakings(history) {
		v.fault("%s: %s got in before %s, who was queued already", o.lock, o.later, o.first)
	}
	for _, s := range scenes {
		for k, want := range s.times {
			if n := times[s.lock+" "+string(k)]; n != want {
				v.fault("%s: %s %d times instead of %d", s.lock, k, n, want)
			}
		}
		for _, p := range s.promises {
			if fault := p.broken(history); fault != "" {
				v.fault("%s: %s", s.lock, fault)
			}
		}
	}
	v.wakeUp, v.takeover = story.wakeUp, story.takeover
	if v.wakeUp > slowest {
		v.fault("a waiter was woken only %s after the unlock", brief(v.wakeUp))
	}
	if story.vote > slowestVote {
		v.fault("a quorum granted the lock only %s after the unlock", brief(story.vote))
	}
	return v
}

// judgeHolder judges what a process heard that gave up: who holds the lock, and for how long.
func (v *verdict) judgeHolder(s *story, e event) {
	for _, a := range s.actors {
		if a.Lock == e.Lock && a.state == holds && a.owner == e.Owner &&
			0 < e.TTL && e.TTL <= a.Lease {
			return
		}
	}
	v.fault("%s: %s heard that %q holds the lock for another %s", e.Lock, e.Process, e.Owner,
		brief(e.TTL))
}

func (v *verdict) fault(format string, args ...any) {
	v.faults = append(v.faults, fmt.Sprintf(format, args...))
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
	said := fmt.Sprintf("demo: %d sections, %d overlaps, counter %d", v.sections, v.overlaps,
		v.counter)
	if v.counter != int64(v.sections) {
		said += fmt.Sprintf(" instead of %d", v.sections)
	}
	if v.wakeUp > 0 {
		said += ", max wake-up " + brief(v.wakeUp)
	}
	if v.takeover > 0 {
		said += ", takeover " + brief(v.takeover)
	}
	if n := len(v.faults); n > 0 {
		said += strings.TrimSuffix(fmt.Sprintf(", %d faults", n), map[bool]string{true: "s"}[n == 1])
	}
	return said
}

// brief formats a duration with the digits that matter: 0.9 ms, 12 ms, 0.91 s, 28.5 s, 30 s.
func brief(d time.Duration) string {
	in := func(unit time.Duration, digits int) string {
		scale := math.Pow10(digits)
		n := math.Round(float64(d)/float64(unit)*scale) / scale
		return strconv.FormatFloat(n, 'f', -1, 64)
	}
	switch {
	case d == 0:
		return "0 s"
	case d < 9_950*time.Microsecond:
		return in(time.Millisecond, 1) + " ms"
	case d < 99_500*time.Microsecond:
		return in(time.Millisecond, 0) + " ms"
	case d < 9_995*time.Millisecond:
		return in(time.Second, 2) + " s"
	default:
		return in(time.Second, 1) + " s"
	}
}
