package rlock

import "sync"

// tasks are the goroutines of a client, so that Close can wait for them.
type tasks struct {
	mu     sync.Mutex
	closed bool // guarded by mu; once set, running never grows
	group  sync.WaitGroup
}

// start runs f in a goroutine. After wait has begun it runs nothing and returns false.
func (t *tasks) start(f func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.group.Go(f)
	return true
}

// wait lets no more tasks start and waits for those that run.
func (t *tasks) wait() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.group.Wait()
}
