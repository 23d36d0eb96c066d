package wait

import (
	"slices"
	"sync"
	"time"
)

// Workers limits the concurrent jobs of a [Pool].
const Workers = 64

// Runner is the work of a [Job]. Runner is an interface, so that a call needs no closure. Run makes
// the call and handles its outcome. Run may block for as long as the server does not reply, and may
// use the pool. Foreign code in Run may end the goroutine. The pool does not recover a panic.
type Runner interface{ Run() }

// Func is a function as a [Runner].
type Func func()

// Run calls f.
func (f Func) Run() { f() }

// Job is a call to the server. Give each job to one pool, only once. Neither change nor reuse a job
// afterwards, because the pool still reads the job for a moment after its Runner has returned.
type Job struct {
	Runner  Runner
	Timeout time.Duration // how long the job may run before the server counts as stalled

	// Guarded by the mutex of the pool.
	state   jobState
	started time.Time // when the job began to run
}

// jobState is the state of a job, which goes queued -> running -> done, or queued -> dropped.
type jobState uint8

const (
	unused  jobState = iota // not given to Do yet
	queued                  // in Pool.queue
	running                 // in Pool.running
	done                    // the Runner has returned, or ended the goroutine
	dropped                 // withdrawn, or not accepted by Do; the job never runs
)

// Pool runs jobs for a server with a bounded number of goroutines. The pool also measures how long
// the server takes for its replies, and for how long the server has not replied.
//
// A lock on several servers asks all servers at once, and continues as soon as enough servers have
// replied. A call to a hung server keeps running, because the outcome must be handled. Such calls
// take at most [Workers] goroutines, and the pool queues further jobs. Callers withdraw jobs with a
// reply that is not needed any more, or call [Pool.Stalled] first. The queue therefore has only
// jobs of callers that still wait.
//
// An idle pool has no goroutine, and need not be closed. All methods are safe for concurrent use.
// No method waits for the server.
type Pool struct {
	start func(func()) bool
	work  func() // the method run, bound once to save allocations

	mu      sync.Mutex // guards everything below, and the unexported fields of all jobs
	workers int        // goroutines that have not found the queue empty yet; never more than Workers
	queue   []*Job     // jobs without a worker, in the order of Do
	running []*Job     // jobs in the order of their start

	trips   [32]time.Duration // the latest round trips; few, so that a change shows soon
	replies int               // round trips recorded so far
}

// NewPool returns a pool without goroutines. start runs a function in a goroutine for which Close
// of the client waits, or returns false if the client is closed. The pool calls start with its
// mutex locked, so start must not block, use the pool, or run the function itself.
func NewPool(start func(func()) bool) *Pool {
	p := &Pool{start: start}
	p.work = p.run
	return p
}

// Do runs j, or queues j if all Workers are busy. If j needs a goroutine and the client is closed,
// Do returns false, and j never runs. Do panics if j was given to Do before, because a second Do
// would corrupt the queue.
func (p *Pool) Do(j *Job) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if j.state != unused {
		panic("wait: Do called twice with the same Job")
	}
	// The pool starts a worker under the mutex, because a job must not be queued for a worker that is
	// counted but was not started.
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

// Withdraw removes j from the queue. Withdraw returns true if j never runs, even if j was withdrawn
// before. Withdraw returns false if j has begun to run, or was not given to Do yet.
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

// run runs jobs, as a worker, until the queue is empty. When run finds the queue empty, it stops
// counting the worker before it unlocks the mutex, so no job is forgotten. If a job ends the
// goroutine, another worker takes its place.
func (p *Pool) run() {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer func() {
		if len(p.queue) == 0 || !p.start(p.work) { // start works even during Close
			p.workers--
		}
	}()
	for len(p.queue) > 0 {
		p.runNext()
	}
}

// runNext runs the first job of the queue. The caller holds p.mu, and runNext unlocks p.mu
// meanwhile.
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

// Stalled returns for how long the oldest running job has had no reply, or 0 within its Timeout.
// Stalled ignores younger jobs, however short their Timeout.
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

// Remaining returns for how long it is worth waiting for j before the caller asks again. For a
// running job, that is the rest of its Timeout. For a queued job, that is the rest of the Timeout
// of the oldest running job, because the queued job has not begun. Remaining returns 0 once the
// time is over, and for a job that is done, withdrawn, or not given to Do.
func (p *Pool) Remaining(j *Job) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	awaited := j
	if j.state == queued && len(p.running) > 0 {
		awaited = p.running[0]
	}
	switch awaited.state {
	case queued: // the worker is starting
		return j.Timeout
	case running:
		return max(0, awaited.Timeout-time.Since(awaited.started))
	}
	return 0
}

// Answered records how long the server took for a reply, even if the caller no longer waited. Do
// not record a call without a reply, because its round-trip time is unknown.
func (p *Pool) Answered(took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trips[p.replies%len(p.trips)] = took
	p.replies++
}

// Timeout returns how long a reply is worth waiting for. The result is three times the duration of
// nearly all of the latest 32 replies, limited by limit and at least least. Before the first reply
// the result is limit, so a first attempt succeeds however far away the server is.
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
		if replies >= 20 { // enough to ignore the longest trip, for example of a hung node
			longest = second
		}
		limit = min(limit, 3*longest)
	}
	return max(limit, least)
}
