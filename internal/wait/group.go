package wait

import (
	"sync"
	"sync/atomic"
)

// Group counts the tasks of a client, which are goroutines and calls of users. Close of the client
// waits for all tasks. All methods are safe for concurrent use.
type Group struct {
	running atomic.Int64  // tasks under way, plus one until Wait begins
	ended   chan struct{} // closed when running becomes 0, because running then stays 0
	workers sync.WaitGroup

	mu      sync.Mutex
	closing bool          // Wait has begun; guarded by mu
	idle    []chan func() // goroutines without a task, the most recent last; guarded by mu
}

// mostIdle limits the goroutines that stay for the next task. These goroutines keep the stack that
// a command needs, because growing a new stack costs more than the rest of acquiring a free lock.
const mostIdle = 4

// NewGroup returns a group without tasks.
func NewGroup() *Group {
	g := &Group{ended: make(chan struct{})}
	g.running.Store(1)
	return g
}

// Go runs f in a goroutine. After Wait has begun, Go still runs f while other tasks are under way,
// because those tasks may need f to end well. Otherwise Go returns false and starts nothing.
func (g *Group) Go(f func()) bool {
	if !g.Join() {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if last := len(g.idle) - 1; last >= 0 {
		g.idle[last] <- f
		g.idle = g.idle[:last]
	} else {
		g.workers.Go(func() { g.work(f) })
	}
	return true
}

// work runs f and the tasks after f, until enough other goroutines are idle or the group closes.
func (g *Group) work(f func()) {
	var next chan func()
	for ok := true; ok; f, ok = <-next {
		func() {
			defer g.Leave() // even if f ends the goroutine
			f()
		}()
		g.mu.Lock()
		if g.closing || len(g.idle) == mostIdle {
			g.mu.Unlock()
			return
		}
		if next == nil {
			next = make(chan func(), 1)
		}
		g.idle = append(g.idle, next)
		g.mu.Unlock()
	}
}

// Join adds a task until Leave. Join returns false once Wait has begun and no task is under way.
// Join succeeds until then, because a task under way may need another task to end well. A call of a
// user checks first whether the client closes, because callers that try again at once would
// otherwise keep Wait from returning.
func (g *Group) Join() bool {
	for n := g.running.Load(); n > 0; n = g.running.Load() {
		if g.running.CompareAndSwap(n, n+1) {
			return true
		}
	}
	return false
}

// Leave ends a task that Join added.
func (g *Group) Leave() {
	if g.running.Add(-1) == 0 {
		close(g.ended)
	}
}

// Wait closes the group. Wait returns when no task is under way and no task can begin. Call Wait
// once.
func (g *Group) Wait() {
	g.mu.Lock()
	g.closing = true
	for _, next := range g.idle {
		close(next)
	}
	g.idle = nil
	g.mu.Unlock()
	g.Leave()
	<-g.ended
	g.workers.Wait()
}
