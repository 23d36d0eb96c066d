package demo

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// verdict is the result of a demo.
type verdict struct {
	sections, overlaps int
	counter            int64 // the sum of the counters
	faults                   // besides overlaps and the counter
	broken             int   // the overlaps that no stall excuses
	wakeUp, takeover   time.Duration
	stall              time.Duration // the longest, of any process
}

// judge judges the whole history, which is ordered by time.
func judge(scenes []scene, history []event, counter int64) verdict {
	all := audit(history)
	v := verdict{sections: len(all), counter: counter}
	v.overlaps, v.broken = overlaps(all)
	story := newStory(scenes, func(string) {})
	times := map[string]int{} // by lock and kind
	for _, e := range history {
		story.tell(e)
		times[e.Lock+" "+string(e.Kind)]++
		v.stall = max(v.stall, e.Stall)
		if e.Error != "" {
			v.fault("%s: %s: %s", e.Lock, e.Process, e.Error)
		}
	}
	v.faults = append(v.faults, story.faults...)
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
	if v.wakeUp > time.Second { // no message woke it, but the end of a lease
		v.fault("a waiter was woken only %s after the unlock", brief(v.wakeUp))
	}
	return v
}

// faults are what did not go as promised.
type faults []string

func (f *faults) fault(format string, args ...any) { *f = append(*f, fmt.Sprintf(format, args...)) }

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
	said := fmt.Sprintf("demo: %d holds, %d overlaps, counter %d", v.sections, v.overlaps,
		v.counter)
	if v.counter != int64(v.sections) {
		said += fmt.Sprintf(" instead of %d", v.sections)
	}
	said += ", max wake-up " + brief(v.wakeUp) + ", takeover " + brief(v.takeover)
	if n := len(v.faults); n > 0 {
		said += fmt.Sprintf(", faults: %d", n)
	}
	return said
}

// brief formats a duration with the digits that matter: 0.9 ms, 12 ms, 0.91 s, 28.46 s, 30 s.
func brief(d time.Duration) string {
	value, unit, digits := d.Seconds(), " s", 100.0
	if d < 100*time.Millisecond {
		value, unit, digits = 1000*value, " ms", 10
	}
	return strconv.FormatFloat(math.Round(value*digits)/digits, 'f', -1, 64) + unit
}
