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

// cleaner removes what Redis may have of owners that hold nothing here: after an acquire whose
// reply never came, a release without a reply, a renewal that may have been executed after its
// lease was given up. It has goroutines only while there is something to do. Each cleanup ends at
// the latest when its lease does.
//
// It can do no harm to a later acquisition of the same owner, because each acquisition has a name
// of its own in Redis. Only those of a writer that reads, and reads again, have one name: their
// session is looked at first.
type cleaner struct {
	client *Client

	wake chan struct{} // says that there is something to do

	mu       sync.Mutex
	lanes    map[any]*lane // those that more may join, by lane.key; guarded by mu
	ready    []*lane       // to be served now, in this order; guarded by mu
	waiting  byDue         // to be served when they are due; guarded by mu
	underway int           // how many are being served; guarded by mu
	phase    cleanerPhase  // guarded by mu
}

// cleanerPhase is what a cleaner does: idle <-> working -> hung.
type cleanerPhase uint8

const (
	idle    cleanerPhase = iota // there is nothing to do
	working                     // it serves lanes
	hung                        // the server hung while the client closed: leases end by themselves
)

func newCleaner(c *Client) *cleaner {
	return &cleaner{client: c, wake: make(chan struct{}, 1), lanes: make(map[any]*lane)}
}

// cleanup is what Redis may have of somebody who has left: a hold, a registration, or a place in a
// queue.
type cleanup struct {
	lock    *Lock
	request request
	until   time.Time // when Redis will have removed it by itself
	// retry says that the command it is of may be executed later than the cleanup, which is
	// repeated until then.
	retry   bool
	since   time.Time    // when it was removed first
	delay   wait.Backoff // between repetitions
	session *lockSession // of an owner that has one name for both modes; else nil
}

// lane has cleanups that are sent one command after the other: as many by each as it can, and those
// that come while one is under way by the next.
type lane struct {
	key   any // set by put; nil if no other cleanup may join
	items []cleanup
	due   time.Time    // when it is to be served, while it waits
	tries wait.Backoff // between commands that fail
}

// lane returns the key of the lane that l belongs in: its session, which sends one command at a
// time, or its lock if one command removes many; nil if it has a lane to itself.
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

// add takes over l. It does not block. After Close it does nothing: the lease will end.
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

// put has a lane served next, after those before it: with the one that its cleanups belong in, if
// there is one. k.mu must be held.
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

// notify has work look again.
func (cl *cleaner) notify() {
	select {
	case cl.wake <- struct{}{}:
	default:
	}
}

// mostAtOnce is how many commands of a client clean up at the same time. Callers may leave at any
// pace, however slow the replies are; one command after the other would be too slow, and what they
// left keeps others out meanwhile.
const mostAtOnce = 64

// work serves lanes until there are none. When the client closes, everything gets one more try and
// no other, and none once the server has hung.
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
			<-cl.wake // until a command that is under way ends
		default:
			b.Sleep(pause, cl.wake, nil)
		}
	}
}

// next takes a lane that is to be served now, or returns nil and how long to wait for one. If all
// is set, those count that are due later. With ok = false nothing is left, and the work is over:
// add begins it anew.
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
		return nil, time.Hour, true // the next command that ends wakes the work
	case len(cl.ready) > 0:
		ln, cl.ready[0] = cl.ready[0], nil
		cl.ready = cl.ready[1:]
		cl.underway++
		return ln, 0, true
	case len(cl.waiting) > 0:
		return nil, cl.waiting[0].due.Sub(now), true
	}
	cl.ready, cl.waiting = nil, nil // nor does memory stay
	if cl.phase == working {
		cl.phase = idle
	}
	return nil, 0, false
}

// serve sends what is first in a lane, by one command, and puts the lane back unless it is empty.
func (cl *cleaner) serve(ln *lane, closing bool) {
	began := time.Now()
	batch := slices.DeleteFunc(cl.take(ln), func(l cleanup) bool {
		return !began.Before(l.until) && !l.lock.kind.kept(l) // Redis has removed it by itself
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

// longestDelay is how long what was not removed waits for its next try: others wait for those
// locks. With more than 1,250 lanes that wait it grows with them, up to the second of a backoff, so
// that fewer commands go to a server that is down.
const longestDelay = 250 * time.Millisecond

// take takes as much off a lane as one command removes.
func (cl *cleaner) take(ln *lane) []cleanup {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	n := min(len(ln.items), ln.items[0].lock.kind.batchSize())
	batch := ln.items[:n:n]
	ln.items = ln.items[n:]
	return batch
}

// wait has a lane served after a pause. k.mu must be held.
func (cl *cleaner) wait(ln *lane, pause time.Duration) {
	ln.due = time.Now().Add(pause)
	heap.Push(&cl.waiting, ln)
}

// retryLater has a cleanup sent once more later, if its command may come after it, until its time is
// over: there are not too many at a time, and the older it is the more seldom. k.mu must be held.
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

// cleaned ends a command that has cleaned up, and returns false if it should be sent again.
func (c *Client) cleaned(l *Lock, r lua.Released, err error) bool {
	if err != nil {
		return c.transport.Permanent(err)
	}
	c.refused(l, r.Refusal)
	return true
}
