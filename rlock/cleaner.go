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
	// again says that the command it is of may be executed later than the cleanup, which is
	// repeated until then.
	again   bool
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
func (l cleanup) lane() any {
	switch {
	case l.session != nil:
		return l.session
	case l.lock.kind.batch() > 1:
		return queueName{l.lock.kind.family(), l.lock.name}
	default:
		return nil
	}
}

// byDue is a heap of lanes, the earliest first.
type byDue []*lane

func (w byDue) Len() int           { return len(w) }
func (w byDue) Less(i, j int) bool { return w[i].due.Before(w[j].due) }
func (w byDue) Swap(i, j int)      { w[i], w[j] = w[j], w[i] }
func (w *byDue) Push(x any)        { *w = append(*w, x.(*lane)) }

func (w *byDue) Pop() any {
	last := len(*w) - 1
	ln := (*w)[last]
	(*w)[last] = nil
	*w = (*w)[:last]
	return ln
}

// add takes over l. It does not block. After Close it does nothing: the lease will end.
func (k *cleaner) add(l cleanup) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.phase == idle && k.client.tasks.Go(k.work) {
		k.phase = working
	}
	if k.phase != working {
		return
	}
	k.put(&lane{items: []cleanup{l}})
	k.notify()
}

// put has a lane served next, after those before it: with the one that its cleanups belong in, if
// there is one. k.mu must be held.
func (k *cleaner) put(ln *lane) {
	ln.key = ln.items[0].lane()
	if with := k.lanes[ln.key]; with != nil && with != ln {
		with.items = append(with.items, ln.items...)
		return
	}
	if ln.key != nil {
		k.lanes[ln.key] = ln
	}
	k.ready = append(k.ready, ln)
}

// notify has work look again.
func (k *cleaner) notify() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// mostAtOnce is how many commands of a client clean up at the same time. Callers may leave at any
// pace, however slow the replies are; one command after the other would be too slow, and what they
// left keeps others out meanwhile.
const mostAtOnce = 64

// work serves lanes until there are none. When the client closes, everything gets one more try and
// no other, and none once the server has hung.
func (k *cleaner) work() {
	b := wait.NewBudget(context.Background(), k.client.closing, wait.Unlimited)
	defer b.Stop()
	var serving sync.WaitGroup
	defer serving.Wait()
	for {
		closing := b.Closing()
		ln, pause, ok := k.next(closing)
		switch {
		case !ok:
			return
		case ln != nil:
			serving.Go(func() { k.serve(ln, closing) })
		case closing:
			<-k.wake // until a command that is under way ends
		default:
			b.Sleep(pause, k.wake, nil)
		}
	}
}

// next takes a lane that is to be served now, or returns nil and how long to wait for one. If all
// is set, those count that are due later. With ok = false nothing is left, and the work is over:
// add begins it anew.
func (k *cleaner) next(all bool) (ln *lane, pause time.Duration, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	for len(k.waiting) > 0 && (all || !k.waiting[0].due.After(now)) {
		k.put(heap.Pop(&k.waiting).(*lane))
	}
	switch {
	case k.underway == mostAtOnce,
		len(k.ready) == 0 && len(k.waiting) == 0 && k.underway > 0:
		return nil, time.Hour, true // the next command that ends wakes the work
	case len(k.ready) > 0:
		ln, k.ready[0] = k.ready[0], nil
		k.ready = k.ready[1:]
		k.underway++
		return ln, 0, true
	case len(k.waiting) > 0:
		return nil, k.waiting[0].due.Sub(now), true
	}
	k.ready, k.waiting = nil, nil // nor does memory stay
	if k.phase == working {
		k.phase = idle
	}
	return nil, 0, false
}

// serve sends what is first in a lane, by one command, and puts the lane back unless it is empty.
func (k *cleaner) serve(ln *lane, closing bool) {
	began := time.Now()
	batch := slices.DeleteFunc(k.take(ln), func(l cleanup) bool {
		return !began.Before(l.until) && !l.lock.kind.kept(l) // Redis has removed it by itself
	})
	done := len(batch) == 0 || batch[0].lock.kind.cleanUp(k.client, batch)

	k.mu.Lock()
	defer k.mu.Unlock()
	defer k.notify()
	k.underway--
	switch {
	case closing && !done && time.Since(began) > k.client.options.CommandTimeout:
		k.phase, k.lanes, k.ready, k.waiting = hung, nil, nil, nil
	case closing || k.phase == hung:
	case done:
		ln.tries = wait.Backoff{}
		for _, l := range batch {
			k.repeat(l)
		}
	default:
		ln.items = append(ln.items, batch...)
	}
	switch {
	case k.phase == hung:
	case len(ln.items) == 0:
		delete(k.lanes, ln.key)
	case done || closing:
		k.put(ln)
	default:
		spaced := time.Duration(len(k.waiting)) * time.Second / 5000
		k.wait(ln, min(ln.tries.Next(), max(longestDelay, spaced)))
	}
}

// longestDelay is how long what was not removed waits for its next try: others wait for those
// locks. With more than 1,250 lanes that wait it grows with them, up to the second of a backoff, so
// that fewer commands go to a server that is down.
const longestDelay = 250 * time.Millisecond

// take takes as much off a lane as one command removes.
func (k *cleaner) take(ln *lane) []cleanup {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := min(len(ln.items), ln.items[0].lock.kind.batch())
	batch := ln.items[:n:n]
	ln.items = ln.items[n:]
	return batch
}

// wait has a lane served after a pause. k.mu must be held.
func (k *cleaner) wait(ln *lane, pause time.Duration) {
	ln.due = time.Now().Add(pause)
	heap.Push(&k.waiting, ln)
}

// repeat has a cleanup sent once more later, if its command may come after it, until its time is
// over: there are not too many at a time, and the older it is the more seldom. k.mu must be held.
func (k *cleaner) repeat(l cleanup) {
	now := time.Now()
	if !l.again || !now.Before(l.until) {
		return
	}
	if l.since.IsZero() {
		l.since = now
	}
	spaced := time.Duration(len(k.waiting)) * time.Second / 500
	pause := max(l.delay.Next(), now.Sub(l.since)/4, spaced)
	k.wait(&lane{items: []cleanup{l}}, pause)
}

// cleaned ends a command that has cleaned up, and returns false if it should be sent again.
func (c *Client) cleaned(l *Lock, r lua.Released, err error) bool {
	if err != nil {
		return c.transport.Permanent(err)
	}
	c.refused(l, r.Refusal)
	return true
}
