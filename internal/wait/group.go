package wait

import (
	"sync"
	"sync/atomic"
)

// Group counts the tasks of a client, which are goroutines and calls of users, so that Close can
// wait for them. All methods are safe for concurrent use.
type Group struct {
	running atomic.Int64  // tasks under way, and one more until Wait has begun
	ended   chan struct{} // closed when running is 0, which it stays
	workers sync.WaitGroup

	mu      sync.Mutex
	closing bool          // Wait has begun; guarded by mu
	idle    []chan func() // goroutines without a task, the most recent last; guarded by mu
}

// mostIdle limits the goroutines that stay for the next task. They keep the stack that a command
// needs: growing a new one costs more than the rest of acquiring a free lock.
const mostIdle = 4

// NewGroup returns a group without tasks.
func NewGroup() *Group {
	g := &Group{ended: make(chan struct{})}
	g.running.Store(1)
	return g
}

// Go runs f in a goroutine. After Wait has begun it still does so while other tasks are under way,
// because they may need it to end well. Otherwise it returns false and starts nothing.
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

// work runs f and the tasks after it, until enough other goroutines are idle or the group closes.
func (g *Group) work(f func()) {
	var next chan func()
	for ok := true; ok; f, ok = <-next {
		func() {
			defer g.Leave() // also when f ends the goroutine
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

// Join adds a task until Leave. It returns false once Wait has begun and no task is under way. It
// succeeds until then, because a task under way may need another task to end well. A user's call
// asks first whether the client closes. Otherwise callers that try again at once would keep Wait
// from returning.
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

// Wait closes the group. It returns when no task is under way and none can begin. Call it once.
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
