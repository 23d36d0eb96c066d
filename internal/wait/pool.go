package wait

import (
	"slices"
	"sync"
	"time"
)

// Workers limits the jobs of a [Pool] that run at a time.
const Workers = 64

// Runner is the work of a [Job]. It is an interface, so that a call needs no closure. Run makes the
// call and handles its outcome. It may block for as long as the server does not reply, and may use
// the pool. It may end the goroutine, as foreign code that it calls may. Nobody recovers a panic.
type Runner interface{ Run() }

// Func is a function that is a [Runner].
type Func func()

// Run calls f.
func (f Func) Run() { f() }

// Job is one call to the server. Give it to one pool, once, and neither change nor reuse it after
// that: the pool still reads it for a moment after its Runner has returned.
type Job struct {
	Runner  Runner
	Timeout time.Duration // how long it may run before the server counts as stalled

	// Guarded by the mutex of the pool.
	state   jobState
	started time.Time // when it began to run
}

// jobState is the state of a job: queued -> running -> done, or queued -> dropped.
type jobState uint8

const (
	unused  jobState = iota // not given to Do yet
	queued                  // in Pool.queue
	running                 // in Pool.running
	done                    // its Runner has returned, or ended the goroutine
	dropped                 // withdrawn or refused: it never runs
)

// Pool runs jobs for one server with a bounded number of goroutines. It measures how long the
// server has not replied and how long its replies take.
//
// A lock over several servers asks all at once, and goes on as soon as enough have replied. A call
// to a server that hangs keeps running, because its outcome must be handled. Such calls take at
// most [Workers] goroutines; further jobs are queued. Callers withdraw jobs whose reply they no
// longer need, or ask [Pool.Stalled] first, so the queue is bounded by the callers that still wait.
//
// An idle pool has no goroutine, and need not be closed. All methods are safe for concurrent use;
// none of them waits for the server.
type Pool struct {
	start func(func()) bool
	work  func() // the method run, bound once

	mu      sync.Mutex // guards everything below, and the unexported fields of all jobs
	workers int        // goroutines that have not found the queue empty yet; at most Workers
	queue   []*Job     // without a worker, in order of Do
	running []*Job     // in order of their start

	trips   [32]time.Duration // the latest round trips: few, so that a change shows soon
	replies int               // round trips ever recorded
}

// NewPool returns a pool without goroutines. start runs a function in a goroutine that the client's
// Close waits for, or returns false if the client is closed. It is called with the pool's mutex
// locked: it must not block, use the pool, or run the function itself.
func NewPool(start func(func()) bool) *Pool {
	p := &Pool{start: start}
	p.work = p.run
	return p
}

// Do runs j, or queues it when all Workers are busy. It returns false, and j never runs, if it
// needs a goroutine and the client is closed. It panics if j was given to Do before, which would
// corrupt the queue.
func (p *Pool) Do(j *Job) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if j.state != unused {
		panic("wait: Do called twice with the same Job")
	}
	// Under the mutex, so that no job is queued for a worker that is counted but was not started.
	if p.workers < Workers && p.start(p.work) {
		p.workers++
	}
	if p.workers == 0 {
		j.state = dropped
		return false
	}
	j.state = queued
	p.queue = append(p.queue, j)
	return true
}

// Withdraw removes j from the queue. It returns true if it never runs, even if it was
// withdrawn before, and false if j has begun to run, or was not given to Do yet.
func (p *Pool) Withdraw(j *Job) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if j.state == queued {
		i := slices.Index(p.queue, j)
		p.queue = slices.Delete(p.queue, i, i+1)
		j.state = dropped
	}
	return j.state == dropped
}

// run runs jobs, as a worker, until the queue is empty. In the same step the worker stops being
// counted, so no job is forgotten. If a job ends the goroutine, another worker takes its place.
func (p *Pool) run() {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer func() {
		if len(p.queue) == 0 || !p.start(p.work) { // Close waits for this worker: it may start another
			p.workers--
		}
	}()
	for len(p.queue) > 0 {
		p.runNext()
	}
}

// runNext runs the first job of the queue. p.mu must be held; it is unlocked meanwhile.
func (p *Pool) runNext() {
	j := p.queue[0]
	p.queue = slices.Delete(p.queue, 0, 1)
	p.running = append(p.running, j)
	j.state, j.started = running, time.Now()
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		i := slices.Index(p.running, j)
		p.running = slices.Delete(p.running, i, i+1)
		j.state = done
	}()
	j.Runner.Run()
}

// Stalled returns for how long the oldest running job has had no reply, or 0 while that is within
// its Timeout. Younger jobs do not count, however short their Timeout.
func (p *Pool) Stalled() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.running) > 0 {
		if age := time.Since(p.running[0].started); age > p.running[0].Timeout {
			return age
		}
	}
	return 0
}

// Remaining returns for how long it is worth waiting for j before asking again: the rest of its
// Timeout while it runs, and of the oldest running job's while it is queued, when its own has not
// begun. It is 0 when that time is over, and for a job that is done, withdrawn or not given to Do.
func (p *Pool) Remaining(j *Job) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	awaited := j
	if j.state == queued && len(p.running) > 0 {
		awaited = p.running[0]
	}
	switch awaited.state {
	case queued: // its worker is starting
		return j.Timeout
	case running:
		return max(0, awaited.Timeout-time.Since(awaited.started))
	}
	return 0
}

// Answered records how long the server took for a reply, even if its caller no longer waited. Do
// not record a call without a reply: its round-trip time is unknown.
func (p *Pool) Answered(took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trips[p.replies%len(p.trips)] = took
	p.replies++
}

// Timeout returns how long a reply is worth waiting for: three times what nearly all of the latest
// 32 replies took, at most limit, but never less than least. Before the first reply it is limit, so
// that a first attempt succeeds however far away the server is.
func (p *Pool) Timeout(least, limit time.Duration) time.Duration {
	p.mu.Lock()
	trips, replies := p.trips, p.replies
	p.mu.Unlock()
	if replies > 0 {
		var longest, second time.Duration
		for _, trip := range trips {
			second = max(second, min(longest, trip))
			longest = max(longest, trip)
		}
		if replies >= 20 { // enough to leave out the longest, for example of a node that hung
			longest = second
		}
		limit = min(limit, 3*longest)
	}
	return max(limit, least)
}
