package wait

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Group counts the tasks of a client, which are goroutines and calls of users, so that Close can
// wait for them. All methods are safe for concurrent use.
type Group struct {
	running atomic.Int64  // tasks under way; plus closing once Wait has begun
	ended   chan struct{} // closed when Wait has begun and no task is under way
	end     sync.Once

	mu      sync.Mutex
	workers sync.WaitGroup
	idle    []chan func() // goroutines without a task, the most recent last; guarded by mu
}

// mostIdle limits the goroutines that stay for the next task. They keep the stack that a command
// needs: growing a new one costs more than the rest of acquiring a free lock.
const mostIdle = 4

// NewGroup returns a group without tasks.
func NewGroup() *Group {
	return &Group{ended: make(chan struct{})}
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
		return true
	}
	g.workers.Go(func() { g.work(f) })
	return true
}

// work runs f and the tasks after it, until enough other goroutines are idle or the group closes.
func (g *Group) work(f func()) {
	var next chan func()
	for ok := true; ok; f, ok = <-next {
		g.run(f)
		g.mu.Lock()
		if g.running.Load() >= closing || len(g.idle) == mostIdle {
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

func (g *Group) run(f func()) {
	defer g.Leave()
	f()
}

// closing is larger than any number of tasks under way.
const closing = 1 << 32

// count adds a task. Once Wait has begun it does so only with late set, and while other tasks are
// under way.
func (g *Group) count(late bool) bool {
	for {
		n := g.running.Load()
		if n == closing || n > closing && !late {
			return false
		}
		if g.running.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Enter adds a user's call as a task until Leave. It returns false as soon as Wait has begun:
// callers that come back at once would keep Wait from returning. It then yields the processor for
// the same reason.
func (g *Group) Enter() bool {
	if g.count(false) {
		return true
	}
	runtime.Gosched()
	return false
}

// Join adds a task that another task needs to end well, until Leave. It returns false when Wait has
// begun and no task is under way.
func (g *Group) Join() bool { return g.count(true) }

// Leave ends a task that Enter or Join added.
func (g *Group) Leave() {
	if g.running.Add(-1) == closing {
		g.end.Do(func() { close(g.ended) })
	}
}

// Wait closes the group. It returns when no task is under way and none can begin. Call it once.
func (g *Group) Wait() {
	if g.running.Add(closing) == closing {
		g.end.Do(func() { close(g.ended) })
	}
	g.mu.Lock()
	for _, next := range g.idle {
		close(next)
	}
	g.idle = nil
	g.mu.Unlock()
	<-g.ended
	g.workers.Wait()
}
