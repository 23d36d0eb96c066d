package wait

import (
	"sync"
	"time"
)

// Workers limits the jobs of a [Pool] that run at a time.
const Workers = 64

// Task is the work of a [Job]: an interface, so that the details of a call need no closure. Run
// makes the call and handles its outcome. It may block for as long as the server does not answer,
// and may use the pool. It must return: nobody recovers a panic or runtime.Goexit.
type Task interface{ Run() }

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
	prev, next *Job      // its neighbours in the list that the state stands for
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
// would cost one for every lock acquired during that hour. Here it costs at most [Workers]. Further
// jobs are queued. Their callers withdraw them when they no longer need the answer, or ask
// [Pool.Stalled] first, so the queue is bounded by the number of callers that still wait.
//
// An idle pool has no goroutine, and need not be closed. All methods are safe for concurrent use;
// none of them waits for the server.
type Pool struct {
	start func(func()) bool
	work  func() // the method run, bound once

	mu      sync.Mutex // guards everything below, and the unexported fields of all jobs
	workers int        // goroutines that have not found the queue empty yet; at most Workers
	queue   Job        // the head of a ring: jobs without a worker, in order of Do
	running Job        // the head of a ring: jobs that a worker runs, in order of their start

	trips   [32]time.Duration // the latest round trips: few, so that a change shows soon
	answers int               // round trips ever recorded
}

// NewPool returns a pool without goroutines. start runs a function in a goroutine that the client's
// Close waits for. If the client is closed it starts nothing and returns false. It is called with
// the pool's mutex locked: it must not block, use the pool, or run the function itself.
func NewPool(start func(func()) bool) *Pool {
	p := &Pool{start: start}
	p.work = p.run
	p.queue.prev, p.queue.next = &p.queue, &p.queue
	p.running.prev, p.running.next = &p.running, &p.running
	return p
}

// push appends j to the ring of a head.
func (j *Job) push(head *Job) {
	j.prev, j.next = head.prev, head
	j.prev.next, j.next.prev = j, j
}

// remove removes j from its ring. It clears its links, so that a job that is kept does not keep its
// neighbours from being collected.
func (j *Job) remove() {
	j.prev.next, j.next.prev = j.next, j.prev
	j.prev, j.next = nil, nil
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
	j.push(&p.queue)
	return true
}

// Withdraw removes j from the queue. It returns true if the task never runs, even if it was
// withdrawn before. It returns false if j has begun to run, or was not given to Do yet.
func (p *Pool) Withdraw(j *Job) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if j.state == queued {
		j.remove()
		j.state = dropped
	}
	return j.state == dropped
}

// run is the body of a worker: it runs jobs until the queue is empty. In the same step the worker
// stops being counted, so no job is forgotten.
func (p *Pool) run() {
	p.mu.Lock()
	for j := p.queue.next; j != &p.queue; j = p.queue.next {
		j.remove()
		j.push(&p.running)
		j.state, j.started = running, time.Now()
		p.mu.Unlock()
		j.Task.Run()
		p.mu.Lock()
		j.remove()
		j.state = done
	}
	p.workers--
	p.mu.Unlock()
}

// Stalled returns for how long the oldest running job has had no answer, or 0 while that is within
// its Timeout. Younger jobs do not count, however short their Timeout.
func (p *Pool) Stalled() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	oldest := p.running.next
	if age := time.Since(oldest.started); oldest != &p.running && age > oldest.Timeout {
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
	if j.state == queued && p.running.next != &p.running {
		awaited = p.running.next
	}
	switch awaited.state {
	case queued: // its worker is starting
		return j.Timeout
	case running:
		return max(0, awaited.Timeout-time.Since(awaited.started))
	default:
		return 0
	}
}

// Answered records how long the server took for an answer, even if its caller no longer waited.
// Calls without an answer must not be recorded, because their round-trip time is unknown.
func (p *Pool) Answered(took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trips[p.answers%len(p.trips)] = took
	p.answers++
}

// Timeout returns how long an answer is worth waiting for: three times what nearly all of the
// latest 32 answers took, at most limit, but never less than least. Before the first answer it is
// limit, so that a first attempt succeeds however far away the server is.
func (p *Pool) Timeout(least, limit time.Duration) time.Duration {
	const enough = 20 // from here on the longest does not count, such as of a node that hung
	p.mu.Lock()
	defer p.mu.Unlock()
	var longest, second time.Duration
	for _, took := range p.trips {
		second = max(second, min(took, longest))
		longest = max(longest, took)
	}
	if p.answers >= enough {
		longest = second
	}
	if p.answers > 0 {
		limit = min(limit, 3*longest)
	}
	return max(limit, least)
}
