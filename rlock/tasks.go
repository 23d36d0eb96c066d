package rlock

import "sync"

// tasks are what a client has under way, so that Close can wait for it: goroutines of its own, and callers that it has to
// send home.
type tasks struct {
	mu      sync.Mutex
	running int           // guarded by mu
	closing bool          // guarded by mu; set by wait
	ended   chan struct{} // closed when closing is set and running has come down to 0, from where it never grows again
}

func newTasks() *tasks {
	return &tasks{ended: make(chan struct{})}
}

// start runs f in a goroutine. When the client is closed and nothing is under way any more, it runs nothing and returns
// false. Until then what is under way may still start what it takes to end well.
func (t *tasks) start(f func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closing && t.running == 0 {
		return false
	}
	t.running++
	go func() {
		defer t.leave()
		f()
	}()
	return true
}

// enter counts a new caller as a task until leave. It returns false as soon as wait has begun: callers that are sent home
// and come back at once would otherwise keep it waiting for ever.
func (t *tasks) enter() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closing {
		return false
	}
	t.running++
	return true
}

func (t *tasks) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running--; t.closing && t.running == 0 {
		close(t.ended)
	}
}

// wait waits until nothing is under way, and lets nothing start after that. It is called once.
func (t *tasks) wait() {
	t.mu.Lock()
	t.closing = true
	if t.running == 0 {
		close(t.ended)
	}
	t.mu.Unlock()
	<-t.ended
}
