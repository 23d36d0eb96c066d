package rlock

import (
	"sync"

	"holdfast/internal/wait"
)

// backlog counts, for each fair lock, the requests under way whose callers have left. Redis may
// still execute them, and queue owners that are gone. So that callers with short waits do not pile
// them up on a slow server, new callers wait until few are left. It is safe for concurrent use.
type backlog struct {
	mu     sync.Mutex
	byLock map[string]debt // guarded by mu; only locks that have any
}

// debt is the number of replies that a server owes to callers of one lock that have left.
type debt struct {
	owed int           // briefly below 0 if a reply is noted before its caller has left
	few  chan struct{} // nil while at most mostOwed are left; closed when that is so again
}

// mostOwed limits such requests. It is not 0, because one lost reply would then block all callers.
const mostOwed = 16

// waitForRoom blocks until at most mostOwed replies are owed, or returns false if the budget ends.
func (b *backlog) waitForRoom(lock string, budget *wait.Budget) bool {
	for {
		b.mu.Lock()
		few := b.byLock[lock].few
		b.mu.Unlock()
		if few == nil || !budget.Wait(few) {
			return few == nil
		}
	}
}

// add notes that callers have left without a reply, or with a negative number that replies came.
func (b *backlog) add(lock string, owed int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	d := b.byLock[lock]
	d.owed += owed
	switch many := d.owed > mostOwed; {
	case many && d.few == nil:
		d.few = make(chan struct{})
	case !many && d.few != nil:
		close(d.few)
		d.few = nil
	}
	b.byLock[lock] = d
	if d.owed == 0 {
		delete(b.byLock, lock)
	}
}
