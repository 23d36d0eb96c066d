package rlock

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// tasks are what a client has under way, so that Close can wait for it: goroutines of its own, and callers that it has to
// send home.
type tasks struct {
	running atomic.Int64  // how many are under way; plus closing when wait has begun
	ended   chan struct{} // closed when wait has begun and none is under way, from where it never grows again
	end     sync.Once

	mu      sync.Mutex
	workers sync.WaitGroup
	idle    []chan func() // of goroutines that wait for something to do, the last one to begin so at the end; guarded by mu
}

// mostIdle is how many goroutines wait for something to do. One that is there already has the stack that a command needs: to
// let a new one's grow costs more than all else that is done for an uncontended lock.
const mostIdle = 4

func newTasks() *tasks {
	return &tasks{ended: make(chan struct{})}
}

// start runs f in a goroutine. When the client is closed and nothing is under way any more, it runs nothing and returns
// false. Until then what is under way may still start what it takes to end well.
func (t *tasks) start(f func()) bool {
	if !t.count(true) {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if last := len(t.idle) - 1; last >= 0 {
		t.idle[last] <- f
		t.idle = t.idle[:last]
		return true
	}
	t.workers.Go(func() { t.work(f) })
	return true
}

// work runs f, and then what else there is to do, until there are enough others for that, or the end is waited for.
func (t *tasks) work(f func()) {
	var next chan func()
	for ok := true; ok; f, ok = <-next {
		t.run(f)
		t.mu.Lock()
		if t.running.Load() >= closing || len(t.idle) == mostIdle {
			t.mu.Unlock()
			return
		}
		if next == nil {
			next = make(chan func(), 1)
		}
		t.idle = append(t.idle, next)
		t.mu.Unlock()
	}
}

func (t *tasks) run(f func()) {
	defer t.leave()
	f()
}

// closing is more than there are ever under way.
const closing = 1 << 32

// count counts one more, unless the end is waited for: then only with late = true, and while others are under way.
func (t *tasks) count(late bool) bool {
	for {
		n := t.running.Load()
		if n == closing || n > closing && !late {
			return false
		}
		if t.running.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// enter counts a new caller as a task until leave. It returns false as soon as wait has begun: callers that are sent home
// and come back at once would otherwise keep it waiting for ever. For the same reason they yield.
func (t *tasks) enter() bool {
	if t.count(false) {
		return true
	}
	runtime.Gosched()
	return false
}

func (t *tasks) leave() {
	if t.running.Add(-1) == closing {
		t.end.Do(func() { close(t.ended) })
	}
}

// wait waits until nothing is under way, and lets nothing start after that. It is called once.
func (t *tasks) wait() {
	if t.running.Add(closing) == closing {
		t.end.Do(func() { close(t.ended) })
	}
	t.mu.Lock()
	for _, next := range t.idle {
		close(next)
	}
	t.idle = nil
	t.mu.Unlock()
	<-t.ended
	t.workers.Wait()
}
