package redlock

import "time"

// await waits until what the tenure's decided asks for is true, which it tells, or until the time is over or p ends.
func (t *tenure) await(p *patience, limit time.Duration) (decided bool) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
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
