package rlock

import (
	"context"
	"slices"
	"sync"
	"time"

	"holdfast/internal/transport"
	"holdfast/internal/wait"
	"holdfast/internal/waitqueue"
	"holdfast/lua"
)

// cleaner removes what Redis may keep for owners that hold nothing in this process. The reason may
// be an acquire or a release without a reply, or a renewal that Redis may have executed after the
// client gave up the lease. A cleaner has goroutines only while there is something to send. Each
// cleanup ends when its lease ends, if not before.
//
// A cleanup cannot harm a later acquisition of the same owner, because each acquisition has its own
// name in Redis. Acquisitions in local turns share a name, but a cleanup of the name is only added
// when no further turn can follow (see passOn). The read holds of a writer also share a name, so
// the cleaner checks their session first.
type cleaner struct {
	client *Client

	mu      sync.Mutex
	lanes   map[any]*lane          // lanes that other cleanups can join, by lane.key; guarded by mu
	ready   []*lane                // lanes to serve now, in order; guarded by mu
	paused  map[*time.Timer]func() // what to do when a pause ends; guarded by mu
	workers int                    // goroutines that serve lanes; guarded by mu
	over    bool                   // the cleaner sends nothing any more, and leases end; guarded by mu
}

func newCleaner(c *Client) *cleaner {
	return &cleaner{client: c, lanes: make(map[any]*lane), paused: make(map[*time.Timer]func())}
}

// cleanup is something that may be left in Redis, such as a hold, a registration, or a queue entry.
type cleanup struct {
	lock    *Lock
	request request
	from    time.Time    // do not clean up before this time; zero without a limit
	until   time.Time    // when Redis removes it by itself
	retry   bool         // repeat the cleanup, because Redis may still execute the command
	since   time.Time    // the time of the first removal
	delay   wait.Backoff // between retries
	session *lockSession // set if the owner has one name for both modes
	keep    keeping      // until when the lock stays taken; zero without AtLeast
}

// refusedRemains returns what a refused request leaves in Redis. A request is refused if another
// owner holds the lock.
func (at *attempt) refusedRemains() waitqueue.Remains {
	if at.request.waits && at.lock.waiting.queued || at.request.registers {
		return waitqueue.Something
	}
	return waitqueue.Nothing
}

// cleanup returns the cleanup of a request. The time of the cleanup counts from now, because a hung
// server executes the commands in its buffers when it continues. heldFor is how long another owner
// has the lock.
func (at *attempt) cleanup(r request, heldFor time.Duration) cleanup {
	cu := cleanup{lock: at.lock, request: r, until: time.Now().Add(r.lasts(at.lock, heldFor))}
	if r.beside {
		cu.session = at.session
	}
	return cu
}

// registrationKept is the longest time that Redis keeps a registration whose owner does not ask
// again.
const registrationKept = 3 * lua.LongestSleep

// lasts returns how long Redis keeps what a request creates. heldFor is how long another owner has
// the lock.
func (r request) lasts(of *Lock, heldFor time.Duration) time.Duration {
	lasts := r.lease
	if of.waiting.queued {
		// A queue entry outlasts the holder's lease and the last request by twice the longest
		// sleep. Each duration may be the longest Duration, so lasts limits each, because the sum
		// must not overflow.
		const ever = 100 * 365 * 24 * time.Hour
		lasts = max(lasts, min(max(heldFor, 0), ever)+min(r.window, ever)+2*lua.LongestSleep)
	}
	if r.registers {
		lasts = max(lasts, registrationKept)
	}
	return lasts
}

// lane is a queue of cleanups. The cleaner sends one command of a lane at a time, and each command
// removes as many cleanups as possible. Cleanups that join meanwhile wait for the next command.
type lane struct {
	key   any // nil if other cleanups cannot join
	items []cleanup
	tries wait.Backoff // between failed commands
}

// laneKey returns the key of the lane of a cleanup. The key is the session, which sends one command
// at a time, or the lock if one command removes many cleanups. nil means that the cleanup has its
// own lane.
func (cu cleanup) laneKey() any {
	switch {
	case cu.keep.owner != "":
		return nil
	case cu.session != nil:
		return cu.session
	case cu.lock.cleanups > 1:
		return queueName{cu.lock.family, cu.lock.name}
	}
	return nil
}

// add schedules a cleanup without blocking. On a closed client, add does nothing, and the lease
// ends.
func (cl *cleaner) add(cu cleanup) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if early := time.Until(cu.from); early > 0 {
		cl.pause(early, func() { cl.join(cu) })
		return
	}
	cl.join(cu)
}

// close ends all pauses. The client has begun to close, so each cleanup gets one more try.
func (cl *cleaner) close() {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	for timer, then := range cl.paused {
		timer.Stop()
		delete(cl.paused, timer)
		then()
	}
}

// join adds a cleanup to its lane. The caller holds cl.mu.
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

// mostAtOnce limits the concurrent cleanup commands of a client. Callers may leave at any rate,
// however slow the replies are. What the callers left blocks others until its removal.
const mostAtOnce = 64

// schedule has a lane served as soon as a worker is ready. The caller holds cl.mu.
func (cl *cleaner) schedule(ln *lane) {
	cl.ready = append(cl.ready, ln)
	switch {
	case cl.workers == mostAtOnce:
	case cl.client.group.Go(cl.work):
		cl.workers++
	default:
		cl.stop() // no task of the client is under way, and none can begin
	}
}

// stop forgets all cleanups, because the client is closed, or the server hung while the client
// closed. The caller holds cl.mu.
func (cl *cleaner) stop() { cl.over, cl.ready, cl.lanes = true, nil, nil }

// pause calls then after d, or as soon as the client closes. The caller holds cl.mu, and so does
// pause when it calls then.
func (cl *cleaner) pause(d time.Duration, then func()) {
	if cl.client.isClosing() {
		then()
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(d, func() {
		cl.mu.Lock()
		defer cl.mu.Unlock()
		if _, paused := cl.paused[timer]; paused { // otherwise close has called then
			delete(cl.paused, timer)
			then()
		}
	})
	cl.paused[timer] = then
}

// work serves lanes until no lane is ready. If a hook around rueidis ends the goroutine, another
// worker takes its place. A panic continues and ends the process.
func (cl *cleaner) work() {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	defer func() {
		if !cl.over && len(cl.ready) > 0 && cl.client.group.Go(cl.work) {
			return
		}
		cl.workers--
		if cl.workers == 0 && len(cl.paused) == 0 {
			cl.ready, cl.paused = nil, make(map[*time.Timer]func()) // frees the memory
		}
	}()
	for !cl.over && len(cl.ready) > 0 {
		ln := cl.ready[0]
		cl.ready[0] = nil
		cl.ready = cl.ready[1:]
		cl.serve(ln)
	}
}

// longestDelay is the longest pause between failed commands of a lane, because others wait for the
// lock. With more than 1,250 pauses, for example while a server is down, the pause grows with their
// number, up to 1 s.
const longestDelay = 250 * time.Millisecond

// serve sends one command for the first cleanups of a lane. serve schedules the lane again unless
// the lane is empty. When the client closes, each cleanup gets one more try, but none after the
// server has hung. The caller holds cl.mu, and serve unlocks cl.mu meanwhile.
func (cl *cleaner) serve(ln *lane) {
	n := min(len(ln.items), max(1, ln.items[0].lock.cleanups))
	batch := ln.items[:n:n]
	ln.items = ln.items[n:]
	cl.mu.Unlock()
	began, closing := time.Now(), cl.client.isClosing()
	batch = slices.DeleteFunc(batch, func(cu cleanup) bool {
		// Redis has removed it by itself, or the client closes before cu.from and leaves it.
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

// served schedules a lane again after a command for a batch of its cleanups, unless the lane is
// empty. The caller holds cl.mu.
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

// retryLater schedules a cleanup once more, after a pause. The pause grows with the number of
// pauses and the age of the cleanup. The caller holds cl.mu.
func (cl *cleaner) retryLater(cu cleanup) {
	if cu.since.IsZero() {
		cu.since = time.Now()
	}
	spaced := time.Duration(len(cl.paused)) * time.Second / 500
	cl.pause(max(cu.delay.Next(), time.Since(cu.since)/4, spaced), func() { cl.join(cu) })
}

// cleanUp sends a batch of cleanups of one lock. cleanUp returns false if the caller should try
// again.
func (c *Client) cleanUp(batch ...cleanup) bool {
	l, first := batch[0].lock, batch[0]
	var released lua.Released
	var err error
	if first.keep.rest() > 0 { // then it is alone
		released, err = transport.Undo(c.calls, func(ctx context.Context) (lua.Released, error) {
			return l.keepTaken(ctx, first.request.owner, first.keep)
		})
	} else {
		released, err = l.kind.cleanUp(batch)
	}
	c.reportRefusal(l, released.Refusal)
	return err == nil || c.transport.Permanent(err)
}
