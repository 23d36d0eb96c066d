package rlock

import (
	"container/heap"
	"context"
	"slices"
	"sync"
	"time"

	"holdfast/internal/wait"
	"holdfast/lua"
)

// cleaner removes what Redis may keep for owners that hold nothing in this process: after an
// acquire or a release without a reply, or a renewal that may have been executed after its lease
// was given up. It has goroutines only while there is something to do. Each cleanup ends when its
// lease does, if not before.
//
// It cannot harm a later acquisition of the same owner, because each acquisition has a name of its
// own in Redis. Only the read holds of one writer share a name: their session is checked first.
type cleaner struct {
	client *Client

	wake chan struct{} // signals that there is something to do

	mu       sync.Mutex
	lanes    map[any]*lane // lanes with a key, by lane.key; guarded by mu
	ready    []*lane       // to be served now, in order; guarded by mu
	waiting  byDue         // to be served when they are due; guarded by mu
	underway int           // lanes being served; guarded by mu
	phase    cleanerPhase  // guarded by mu
}

// cleanerPhase is the state of a cleaner: idle <-> working -> hung.
type cleanerPhase uint8

const (
	idle    cleanerPhase = iota // there is nothing to do
	working                     // it serves lanes
	hung                        // the server hung while the client closed: leases run out
)

func newCleaner(c *Client) *cleaner {
	return &cleaner{client: c, wake: make(chan struct{}, 1), lanes: make(map[any]*lane)}
}

// cleanup is something that may have been left in Redis: a hold, a registration, or a queue entry.
type cleanup struct {
	lock    *Lock
	request request
	until   time.Time // when Redis removes it by itself
	// retry says that the command to clean up after may be executed after the cleanup, which is
	// repeated until then.
	retry   bool
	since   time.Time    // when it was first removed
	delay   wait.Backoff // between repetitions
	session *lockSession // set if the owner has one name for both modes
}

// lane is a queue of cleanups that are sent one command at a time. Each command removes as many as
// it can; those that join meanwhile wait for the next.
type lane struct {
	key   any // set by put; nil if other cleanups cannot join
	items []cleanup
	due   time.Time    // when it is to be served, while in cleaner.waiting
	tries wait.Backoff // between failed commands
}

// lane returns the key of the lane of a cleanup: its session, which sends one command at a time, or
// its lock if one command removes many. It returns nil if the cleanup has a lane of its own.
func (cu cleanup) lane() any {
	switch {
	case cu.session != nil:
		return cu.session
	case cu.lock.kind.batchSize() > 1:
		return queueName{cu.lock.kind.family(), cu.lock.name}
	default:
		return nil
	}
}

// byDue is a heap of lanes, the earliest first.
type byDue []*lane

func (bd byDue) Len() int           { return len(bd) }
func (bd byDue) Less(i, j int) bool { return bd[i].due.Before(bd[j].due) }
func (bd byDue) Swap(i, j int)      { bd[i], bd[j] = bd[j], bd[i] }
func (bd *byDue) Push(x any)        { *bd = append(*bd, x.(*lane)) }

func (bd *byDue) Pop() any {
	last := len(*bd) - 1
	ln := (*bd)[last]
	(*bd)[last] = nil
	*bd = (*bd)[:last]
	return ln
}

// add schedules a cleanup, without blocking. Once the client is closed it does nothing: the lease
// runs out.
func (cl *cleaner) add(l cleanup) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if cl.phase == idle && cl.client.tasks.Go(cl.work) {
		cl.phase = working
	}
	if cl.phase != working {
		return
	}
	cl.put(&lane{items: []cleanup{l}})
	cl.notify()
}

// put appends a lane to those ready, or its cleanups to the lane with the same key. cl.mu must be
// held.
func (cl *cleaner) put(ln *lane) {
	ln.key = ln.items[0].lane()
	if with := cl.lanes[ln.key]; with != nil && with != ln {
		with.items = append(with.items, ln.items...)
		return
	}
	if ln.key != nil {
		cl.lanes[ln.key] = ln
	}
	cl.ready = append(cl.ready, ln)
}

// notify wakes work.
func (cl *cleaner) notify() {
	select {
	case cl.wake <- struct{}{}:
	default:
	}
}

// mostAtOnce limits the cleanup commands of a client at a time. Callers may leave at any rate,
// however slow the replies are. One command at a time would be too slow, and what they left blocks
// others meanwhile.
const mostAtOnce = 64

// work serves lanes until there are none. When the client closes, each cleanup gets one more try,
// and none once the server has hung.
func (cl *cleaner) work() {
	b := wait.NewBudget(context.Background(), cl.client.closing, wait.Unlimited)
	defer b.Stop()
	var serving sync.WaitGroup
	defer serving.Wait()
	for {
		closing := b.Closing()
		ln, pause, ok := cl.next(closing)
		switch {
		case !ok:
			return
		case ln != nil:
			serving.Go(func() { cl.serve(ln, closing) })
		case closing:
			<-cl.wake // signaled when a command ends
		default:
			b.Sleep(pause, cl.wake, nil)
		}
	}
}

// next returns a lane to serve now, or nil and how long to wait for one. With all set, lanes that
// are due later count as well. With ok = false nothing is left and work ends: add starts it again.
func (cl *cleaner) next(all bool) (ln *lane, pause time.Duration, ok bool) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	now := time.Now()
	for len(cl.waiting) > 0 && (all || !cl.waiting[0].due.After(now)) {
		cl.put(heap.Pop(&cl.waiting).(*lane))
	}
	switch {
	case cl.underway == mostAtOnce,
		len(cl.ready) == 0 && len(cl.waiting) == 0 && cl.underway > 0:
		return nil, time.Hour, true // a command that ends wakes work
	case len(cl.ready) > 0:
		ln, cl.ready[0] = cl.ready[0], nil
		cl.ready = cl.ready[1:]
		cl.underway++
		return ln, 0, true
	case len(cl.waiting) > 0:
		return nil, cl.waiting[0].due.Sub(now), true
	}
	cl.ready, cl.waiting = nil, nil // frees their memory
	if cl.phase == working {
		cl.phase = idle
	}
	return nil, 0, false
}

// serve sends one command for the first cleanups of a lane, and puts the lane back unless it is
// empty.
func (cl *cleaner) serve(ln *lane, closing bool) {
	began := time.Now()
	batch := slices.DeleteFunc(cl.take(ln), func(l cleanup) bool {
		return !began.Before(l.until) && !l.kept() // Redis has removed it by itself
	})
	done := len(batch) == 0 || batch[0].lock.kind.cleanUp(cl.client, batch)

	cl.mu.Lock()
	defer cl.mu.Unlock()
	defer cl.notify()
	cl.underway--
	switch {
	case closing && !done && time.Since(began) > cl.client.options.CommandTimeout:
		cl.phase, cl.lanes, cl.ready, cl.waiting = hung, nil, nil, nil
	case closing || cl.phase == hung:
	case done:
		ln.tries = wait.Backoff{}
		for _, l := range batch {
			cl.retryLater(l)
		}
	default:
		ln.items = append(ln.items, batch...)
	}
	switch {
	case cl.phase == hung:
	case len(ln.items) == 0:
		delete(cl.lanes, ln.key)
	case done || closing:
		cl.put(ln)
	default:
		spaced := time.Duration(len(cl.waiting)) * time.Second / 5000
		cl.wait(ln, min(ln.tries.Next(), max(longestDelay, spaced)))
	}
}

// longestDelay is the longest pause between failed commands of a lane: others wait for those locks.
// With more than 1,250 waiting lanes it grows with their number, up to one second, so that fewer
// commands go to a server that is down.
const longestDelay = 250 * time.Millisecond

// take removes as many cleanups from a lane as one command handles.
func (cl *cleaner) take(ln *lane) []cleanup {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	n := min(len(ln.items), ln.items[0].lock.kind.batchSize())
	batch := ln.items[:n:n]
	ln.items = ln.items[n:]
	return batch
}

// wait schedules a lane after a pause. cl.mu must be held.
func (cl *cleaner) wait(ln *lane, pause time.Duration) {
	ln.due = time.Now().Add(pause)
	heap.Push(&cl.waiting, ln)
}

// retryLater schedules a cleanup once more if its command may still be executed. Repetitions are
// spaced out: the more there are and the older it is, the longer the pause. cl.mu must be held.
func (cl *cleaner) retryLater(l cleanup) {
	now := time.Now()
	if !l.retry || !now.Before(l.until) {
		return
	}
	if l.since.IsZero() {
		l.since = now
	}
	spaced := time.Duration(len(cl.waiting)) * time.Second / 500
	pause := max(l.delay.Next(), now.Sub(l.since)/4, spaced)
	cl.wait(&lane{items: []cleanup{l}}, pause)
}

// cleaned handles the reply to a cleanup, and returns false if it should be sent again.
func (c *Client) cleaned(l *Lock, r lua.Released, err error) bool {
	if err != nil {
		return c.transport.Permanent(err)
	}
	c.refused(l, r.Refusal)
	return true
}
