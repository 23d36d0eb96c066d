package rlock

import (
	"slices"
	"sync"
	"time"

	"holdfast/internal/wait"
	"holdfast/internal/waitqueue"
	"holdfast/lua"
)

// cleaner removes what Redis may keep for owners that hold nothing in this process: after an
// acquire or a release without a reply, or a renewal that may have been executed after its lease
// was given up. It has goroutines only while there is something to send. Each cleanup ends when its
// lease does, if not before.
//
// It cannot harm a later acquisition of the same owner, because each acquisition has a name of its
// own in Redis. Only the read holds of one writer share a name: their session is checked first.
type cleaner struct {
	client *Client

	mu      sync.Mutex
	lanes   map[any]*lane          // that other cleanups can join, by lane.key; guarded by mu
	ready   []*lane                // to be served now, in order; guarded by mu
	paused  map[*time.Timer]func() // what is done when a pause is over; guarded by mu
	workers int                    // goroutines that serve lanes; guarded by mu
	over    bool                   // nothing is sent any more, and leases run out; guarded by mu
}

func newCleaner(c *Client) *cleaner {
	return &cleaner{client: c, lanes: make(map[any]*lane), paused: make(map[*time.Timer]func())}
}

// cleanup is something that may have been left in Redis: a hold, a registration, or a queue entry.
type cleanup struct {
	lock    *Lock
	request request
	from    time.Time    // not before this: until then it is kept on purpose; zero if it is not
	until   time.Time    // when Redis removes it by itself
	retry   bool         // repeat it: the command to clean up after may still be executed
	since   time.Time    // when it was first removed
	delay   wait.Backoff // between retries
	session *lockSession // set if the owner has one name for both modes
}

// refusedRemains returns what a refused request leaves in Redis.
func (at *attempt) refusedRemains() waitqueue.Remains {
	if at.request.waits && at.lock.waiting.queued || at.request.registers {
		return waitqueue.Something
	}
	return waitqueue.Nothing
}

// cleanup returns the cleanup of a request. Its time counts from now: a server that hung executes
// what is in its buffers when it goes on. heldFor is how long another owner has the lock.
func (at *attempt) cleanup(r request, heldFor time.Duration) cleanup {
	cu := cleanup{lock: at.lock, request: r, until: time.Now().Add(r.lasts(at.lock, heldFor))}
	if r.beside {
		cu.session = at.session
	}
	return cu
}

// registrationKept is how long Redis keeps a registration whose owner does not ask again, at most.
const registrationKept = 3 * lua.LongestSleep

// lasts returns how long Redis keeps what a request creates; heldFor is that of cleanup.
func (r request) lasts(of *Lock, heldFor time.Duration) time.Duration {
	lasts := r.lease
	if of.waiting.queued {
		// A queue entry outlasts the holder's lease and the last request by twice the longest sleep.
		// Each may be the longest Duration, so it is bounded: the sum must not overflow.
		const ever = 100 * 365 * 24 * time.Hour
		lasts = max(lasts, min(max(heldFor, 0), ever)+min(r.window, ever)+2*lua.LongestSleep)
	}
	if r.registers {
		lasts = max(lasts, registrationKept)
	}
	return lasts
}

// lane is a queue of cleanups that are sent one command at a time. Each command removes as many as
// it can; those that join meanwhile wait for the next.
type lane struct {
	key   any // nil if other cleanups cannot join
	items []cleanup
	tries wait.Backoff // between failed commands
}

// laneKey returns the key of the lane of a cleanup: its session, which sends one command at a time,
// or its lock if one command removes many; nil if the cleanup has a lane of its own.
func (cu cleanup) laneKey() any {
	switch {
	case cu.session != nil:
		return cu.session
	case cu.lock.cleanups > 1:
		return queueName{cu.lock.family, cu.lock.name}
	}
	return nil
}

// add schedules a cleanup, without blocking; none on a closed client, where the lease runs out.
func (cl *cleaner) add(cu cleanup) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if early := time.Until(cu.from); early > 0 {
		cl.pause(early, func() { cl.join(cu) })
		return
	}
	cl.join(cu)
}

// close ends all pauses. The client has begun to close: each cleanup gets one more try.
func (cl *cleaner) close() {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	for timer, then := range cl.paused {
		timer.Stop()
		delete(cl.paused, timer)
		then()
	}
}

// join adds a cleanup to its lane. cl.mu must be held.
func (cl *cleaner) join(cu cleanup) {
	if cl.over {
		return
	}
	key := cu.laneKey()
	if ln := cl.lanes[key]; ln != nil {
		ln.items = append(ln.items, cu)
		return
	}
	ln := &lane{key: key, items: []cleanup{cu}}
	if key != nil {
		cl.lanes[key] = ln
	}
	cl.schedule(ln)
}

// mostAtOnce limits the cleanup commands of a client at a time. Callers may leave at any rate,
// however slow the replies are, and what they left blocks others until it is removed.
const mostAtOnce = 64

// schedule has a lane served as soon as a worker can. cl.mu must be held.
func (cl *cleaner) schedule(ln *lane) {
	cl.ready = append(cl.ready, ln)
	switch {
	case cl.workers == mostAtOnce:
	case cl.client.group.Go(cl.work):
		cl.workers++
	default:
		cl.stop() // no task of the client is under way any more, and none can begin
	}
}

// stop forgets all: the client is closed, or the server hung as it closed. cl.mu must be held.
func (cl *cleaner) stop() { cl.over, cl.ready, cl.lanes = true, nil, nil }

// pause calls then, with cl.mu held, after d or as soon as the client closes. cl.mu must be held.
func (cl *cleaner) pause(d time.Duration, then func()) {
	if cl.client.isClosing() {
		then()
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(d, func() {
		cl.mu.Lock()
		defer cl.mu.Unlock()
		if _, paused := cl.paused[timer]; paused { // otherwise close was quicker
			delete(cl.paused, timer)
			then()
		}
	})
	cl.paused[timer] = then
}

// work serves lanes until none is ready. If a hook around rueidis ends the goroutine, another
// worker takes its place. A panic goes on and ends the process.
func (cl *cleaner) work() {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	defer func() {
		if !cl.over && len(cl.ready) > 0 && cl.client.group.Go(cl.work) {
			return
		}
		cl.workers--
		if cl.workers == 0 && len(cl.paused) == 0 {
			cl.ready, cl.paused = nil, make(map[*time.Timer]func()) // frees their memory
		}
	}()
	for !cl.over && len(cl.ready) > 0 {
		ln := cl.ready[0]
		cl.ready[0] = nil
		cl.ready = cl.ready[1:]
		cl.serve(ln)
	}
}

// longestDelay is the longest pause between failed commands of a lane: others wait for its lock.
// With more than 1,250 pauses, as of a server that is down, it grows with their number, up to 1 s.
const longestDelay = 250 * time.Millisecond

// serve sends one command for the first cleanups of a lane, and schedules the lane again unless it
// is empty. When the client closes, each cleanup gets one more try, and none once the server has
// hung. cl.mu must be held; it is unlocked meanwhile.
func (cl *cleaner) serve(ln *lane) {
	n := min(len(ln.items), max(1, ln.items[0].lock.cleanups))
	batch := ln.items[:n:n]
	ln.items = ln.items[n:]
	cl.mu.Unlock()
	began, closing := time.Now(), cl.client.isClosing()
	batch = slices.DeleteFunc(batch, func(cu cleanup) bool {
		// Redis has removed it by itself, or the client closes and leaves it.
		return !began.Before(cu.until) && !cu.kept() || began.Before(cu.from)
	})
	done := len(batch) == 0
	defer func() { // even if a hook around rueidis has ended the goroutine
		cl.mu.Lock()
		cl.served(ln, batch, began, closing, done)
	}()
	if !done {
		done = cl.client.cleanUp(batch...)
	}
}

// served schedules a lane again after a command for a batch of its cleanups, unless it is empty.
// cl.mu must be held.
func (cl *cleaner) served(ln *lane, batch []cleanup, began time.Time, closing, done bool) {
	switch {
	case closing && !done && time.Since(began) > cl.client.options.CommandTimeout:
		cl.stop()
	case closing:
	case done:
		ln.tries = wait.Backoff{}
		for _, cu := range batch {
			if cu.retry && time.Until(cu.until) > 0 {
				cl.retryLater(cu)
			}
		}
	default:
		ln.items = append(ln.items, batch...)
		spaced := time.Duration(len(cl.paused)) * time.Second / 5000
		cl.pause(min(ln.tries.Next(), max(longestDelay, spaced)), func() { cl.schedule(ln) })
		return
	}
	if len(ln.items) > 0 {
		cl.schedule(ln)
	} else {
		delete(cl.lanes, ln.key)
	}
}

// retryLater schedules a cleanup once more, after a pause that grows with the number of pauses and
// the age of the cleanup. cl.mu must be held.
func (cl *cleaner) retryLater(cu cleanup) {
	if cu.since.IsZero() {
		cu.since = time.Now()
	}
	spaced := time.Duration(len(cl.paused)) * time.Second / 500
	cl.pause(max(cu.delay.Next(), time.Since(cu.since)/4, spaced), func() { cl.join(cu) })
}

// cleanUp sends a batch of cleanups of one lock, and returns false if it should be tried again.
func (c *Client) cleanUp(batch ...cleanup) bool {
	l := batch[0].lock
	released, err := l.kind.cleanUp(batch)
	c.reportRefusal(l, released.Refusal)
	return err == nil || c.transport.Permanent(err)
}
