package rlock

import "sync"

// backlog counts, for each fair lock, the requests whose callers left before there was an answer. Each may be executed still, and
// queue somebody who is gone. When a server does not keep up, callers that wait for a short time only would have more and more of
// them under way, so those who come then wait here until there are few again.
type backlog struct {
	mu     sync.Mutex
	byLock map[string]*debt // guarded by mu; of locks that have any
}

// debt is what a server owes to callers of one lock who have left.
type debt struct {
	answers int           // below 0 for a moment if an answer comes before it is known that its caller left
	few     chan struct{} // closed when there are few again; nil while nobody waits for that
}

// mostOwed is how many requests may be under way whose callers have left. A reply that is lost must not hold anybody up.
const mostOwed = 16

// await waits until there are few. It returns false if p ended first.
func (b *backlog) await(lock string, p *patience) bool {
	for {
		b.mu.Lock()
		d := b.byLock[lock]
		if d == nil || d.answers <= mostOwed {
			b.mu.Unlock()
			return true
		}
		if d.few == nil {
			d.few = make(chan struct{})
		}
		few := d.few
		b.mu.Unlock()
		select {
		case <-few:
		case <-p.timeout():
			return false
		case <-p.ctx.Done():
			return false
		case <-p.closing:
			return false
		}
	}
}

// add notes that more callers have left, or with -1 that one of them was answered.
func (b *backlog) add(lock string, more int) {
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
	d.answers += more
	if d.few != nil && d.answers <= mostOwed {
		close(d.few)
		d.few = nil
	}
	if d.answers == 0 {
		delete(b.byLock, lock)
	}
}
