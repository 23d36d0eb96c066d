package redlock

import "time"

// await waits until what the tenure's decided asks for is true, which it tells, or until the time is over or p ends.
func (t *tenure) await(p *patience, limit time.Duration) (decided bool) {
	timer := t.startTimer(limit)
	defer t.stopTimer(timer)
	for {
		t.mu.Lock()
		decided := t.decided()
		t.mu.Unlock()
		if decided {
			select { // somebody else may wait for the same: Release beside Extend
			case t.progress <- struct{}{}:
			default:
			}
			return true
		}
		select {
		case <-t.progress: // perhaps of what somebody waited for before
		case <-timer.C:
			return false
		case <-p.over:
			return false
		case <-p.ctx.Done():
			return false
		}
	}
}

// startTimer is time.NewTimer, with the last one that was stopped: a lock that is released soon has one for both.
func (t *tenure) startTimer(d time.Duration) *time.Timer {
	t.mu.Lock()
	timer := t.timer
	t.timer = nil
	t.mu.Unlock()
	if timer == nil {
		return time.NewTimer(d)
	}
	timer.Reset(d)
	return timer
}

// stopTimer keeps the timer for another time. What it may have sent is gone then.
func (t *tenure) stopTimer(timer *time.Timer) {
	timer.Stop()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timer = timer
}
