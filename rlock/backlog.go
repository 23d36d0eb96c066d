package rlock

import (
	"sync"

	"holdfast/internal/wait"
)

// backlog counts, for each fair lock, the requests that are under way without their callers. Redis
// may still execute them, and queue somebody who has left. When a server does not keep up, callers
// with short waits would pile up such requests; so new callers wait here until only few are left.
// It is safe for concurrent use.
type backlog struct {
	mu     sync.Mutex
	byLock map[string]*debt // guarded by mu; of locks that have any
}

// debt is the number of answers that a server owes to callers of one lock who have left.
type debt struct {
	answers int           // below 0 for a moment, when an answer overtakes the news that its caller left
	few     chan struct{} // closed when at most mostOwed are left; nil while nobody waits
}

// mostOwed is how many such requests are allowed: not 0, or one lost reply would hold everybody up.
const mostOwed = 16

// await blocks until at most mostOwed answers are owed. It returns false if the budget ended first.
func (b *backlog) await(lock string, budget *wait.Budget) bool {
	for {
		few := b.few(lock)
		if few == nil {
			return true
		}
		if !budget.Wait(few) {
			return false
		}
	}
}

// few returns a channel that is closed when at most mostOwed answers are owed; nil if that is so
// now.
func (b *backlog) few(lock string) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	d := b.byLock[lock]
	if d == nil || d.answers <= mostOwed {
		return nil
	}
	if d.few == nil {
		d.few = make(chan struct{})
	}
	return d.few
}

// left notes that a caller has left without an answer.
func (b *backlog) left(lock string) { b.add(lock, 1) }

// answered notes that such an answer has come.
func (b *backlog) answered(lock string) { b.add(lock, -1) }

func (b *backlog) add(lock string, answers int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	d := b.byLock[lock]
	if d == nil {
		d = new(debt)
		if b.byLock == nil {
			b.byLock = make(map[string]*debt)
		}
		b.byLock[lock] = d
	}
	d.answers += answers
	if d.few != nil && d.answers <= mostOwed {
		close(d.few)
		d.few = nil
	}
	if d.answers == 0 {
		delete(b.byLock, lock)
	}
}
