package demo

import (
	"context"
	"sync/atomic"
	"time"
)

// stillness is the least stall that may explain a fault: a tenth of the shortest lease. A machine
// that runs timers so late may also be late to renew.
const stillness = watchdogLease / 10

// stalls measures how late the timers of this process run.
type stalls struct {
	due   atomic.Pointer[time.Time] // when the timer should run out that is under way
	worst atomic.Int64
}

// watch measures until ctx ends.
func (s *stalls) watch(ctx context.Context) {
	for ctx.Err() == nil {
		s.worst.Store(int64(s.longest()))
		due := time.Now().Add(frame)
		s.due.Store(&due)
		time.Sleep(frame)
	}
}

// longest returns the longest stall so far, which may have ended this very moment.
func (s *stalls) longest() time.Duration {
	worst := time.Duration(s.worst.Load())
	if due := s.due.Load(); due != nil {
		worst = max(worst, time.Since(*due))
	}
	return worst
}
