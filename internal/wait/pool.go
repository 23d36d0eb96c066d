package wait

import (
	"sync"
	"time"
)

// Workers limits the jobs of a [Pool] that run at a time.
const Workers = 64

// Task is the work of a [Job]. It is an interface, so that a type with the details of a call can be
// its own task without a closure.
type Task interface {
	// Run makes the call and handles its outcome. It may block for as long as the server does not
	// answer, and may use the pool. It must return: nobody recovers a panic, and runtime.Goexit
	// would end the worker for good.
	Run()
}

// Func is a function that is a [Task].
type Func func()

// Run calls f.
func (f Func) Run() { f() }

// Job is one call to the server. Give it to one pool, once, and neither change nor reuse it after
// that: the pool still reads it for a moment after its task has returned.
type Job struct {
	Task Task
	// Timeout limits how long the job may run before the server counts as stalled.
	Timeout time.Duration

	// Guarded by the mutex of the pool.
	state      jobState
	started    time.Time // when it began to run
	prev, next *Job      // neighbours in the list that the state stands for
}

// jobState is the state of a job: queued -> running -> done, or queued -> dropped.
type jobState uint8

const (
	unused  jobState = iota // not given to Do yet
	queued                  // in Pool.queue
	running                 // in Pool.running
	done                    // its task has returned
	dropped                 // withdrawn or refused: its task never runs
)

// Pool runs jobs for one server with a bounded number of goroutines. It measures how long the
// server has not answered and how long its answers take.
//
// A lock over several servers asks all of them at once and goes on as soon as enough have answered.
// A call to a hung server stays behind: it cannot be given up, since the server may still execute
// it, and its outcome must be handled. With a goroutine per call, a server that hangs for an hour
// would cost one for every lock acquired during that hour. Here it costs at most [Workers]:
//
//   - Only [Pool.Do] starts a worker, and only while fewer than Workers exist, under one mutex.
//   - A job that finds no free worker is queued, which costs no goroutine. Its caller withdraws it
//     with [Pool.Withdraw] when it no longer needs the answer, or asks [Pool.Stalled] first. The
//     queue is thus bounded by the number of callers that still wait.
//
// No job is forgotten: a worker ends only when the queue is empty, in the same step in which it
// stops being counted. A job queued before that step is taken by it; a job queued after it gets a
// new worker. An idle pool has no goroutine, and need not be closed.
//
// All methods are safe for concurrent use; none of them waits for the server.
type Pool struct {
	start func(func()) bool
	work  func() // the method run, bound once
	trips roundTrips

	mu      sync.Mutex // guards everything below, and the unexported fields of all jobs
	workers int        // goroutines that have not found the queue empty yet; at most Workers
	queue   jobs       // jobs without a worker, in order of Do; empty if workers == 0
	running jobs       // jobs that a worker runs, in order of their start
}

// NewPool returns a pool without goroutines. start runs a function in a goroutine that the client's
// Close waits for. If the client is closed it starts nothing and returns false. It is called with
// the pool's mutex locked: it must not block, use the pool, or run the function itself.
func NewPool(start func(func()) bool) *Pool {
	p := &Pool{start: start}
	p.work = p.run
	return p
}

// Do runs j, or queues it when all Workers are busy. It returns false, and the task never runs, if
// j needs a goroutine and the client is closed. It panics if j was given to Do before, which would
// corrupt the queue.
func (p *Pool) Do(j *Job) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if j.state != unused {
		panic("wait: Do called twice with the same Job")
	}
	// Starting a worker under the mutex keeps the count exact: a job must not be queued for a
	// worker that was counted but could not be started.
	if p.workers < Workers && p.start(p.work) {
		p.workers++
	}
	if p.workers == 0 {
		j.state = dropped
		return false
	}
	j.state = queued
	p.queue.push(j)
	return true
}

// Withdraw removes j from the queue. It returns true if the task never runs, even if it was
// withdrawn before. It returns false if j has begun to run, or was not given to Do yet.
func (p *Pool) Withdraw(j *Job) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if j.state == queued {
		p.queue.remove(j)
		j.state = dropped
	}
	return j.state == dropped
}

// Stalled returns for how long the oldest running job has had no answer, or 0 while that is within
// its Timeout. Younger jobs do not count, however short their Timeout.
func (p *Pool) Stalled() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	oldest := p.running.front
	if oldest == nil {
		return 0
	}
	if age := time.Since(oldest.started); age > oldest.Timeout {
		return age
	}
	return 0
}

// Remaining returns for how long it is worth waiting for j before asking again. For a running job
// that is the rest of its Timeout. For a queued job, whose own Timeout has not begun, it is the
// rest of the Timeout of the oldest running job. It is 0 when that time is over, and for a job that
// is done, withdrawn, or was not given to Do.
func (p *Pool) Remaining(j *Job) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	awaited := j
	if j.state == queued && p.running.front != nil {
		awaited = p.running.front
	}
	switch awaited.state {
	case queued: // its worker is starting
		return j.Timeout
	case running:
		return max(0, awaited.Timeout-time.Since(awaited.started))
	case unused, done, dropped:
	}
	return 0
}

// run is the body of a worker.
func (p *Pool) run() {
	for j := p.next(nil); j != nil; j = p.next(j) {
		j.Task.Run()
	}
}

// next ends the worker's last job, if it had one, and returns the next one in the queue. It returns
// nil if the queue is empty: the worker is no longer counted and must end.
func (p *Pool) next(last *Job) *Job {
	p.mu.Lock()
	defer p.mu.Unlock()
	if last != nil {
		p.running.remove(last)
		last.state = done
	}
	j := p.queue.front
	if j == nil {
		p.workers--
		return nil
	}
	p.queue.remove(j)
	j.state, j.started = running, time.Now()
	p.running.push(j)
	return j
}
