package demo

import (
	"sync"
	"time"
)

// stillness is the least stall that may explain a fault: a tenth of the shortest lease. A machine
// that runs timers so late may also be late to renew.
const stillness = watchdogLease / 10

// stalls measures how late the timers of this process run.
type stalls struct {
	mu    sync.Mutex
	due   time.Time     // guarded by mu; when the timer should run out that is under way
	worst time.Duration // guarded by mu
}

// watch measures until stop is closed.
func (s *stalls) watch(stop <-chan struct{}) {
	for {
		s.longest()
		s.mu.Lock()
		s.due = time.Now().Add(frame)
		s.mu.Unlock()
		select {
		case <-time.After(frame):
		case <-stop:
			return
		}
	}
}

// longest returns the longest stall so far, which may have ended this very moment.
func (s *stalls) longest() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.due.IsZero() {
		s.worst = max(s.worst, time.Since(s.due))
	}
	return s.worst
}

// broken returns how many sections began while another's hold was valid. That no stall excuses: a
// process that stands still notices the end of its hold too late, but nobody gets in before it. A
// marker that says that somebody was inside is excused if a process outstayed its hold until then.
func broken(all []stay) (count int) {
	for i := range all {
		b := &all[i]
		overlaps, excused := false, b.alone
		for j := range all {
			a := &all[j]
			if a.lock != b.lock || a.from > b.from {
				continue
			}
			excused = excused || a.until < a.to
			overlaps = overlaps || i != j && a.excludes(b) && b.from < min(a.to, a.until)
		}
		if overlaps || !excused {
			count++
		}
	}
	return count
}
