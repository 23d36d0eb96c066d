package rlock

import (
	"container/heap"
	"context"
	"slices"
	"sync"
	"time"

	"holdfast/lua"
)

// janitor releases what may be held in Redis though nobody here holds it: after an acquire whose
// answer never came, a release without an answer, a renewal that may have been executed after its
// lease was given up. It has goroutines only while there is something to do. Each leftover ends at
// the latest when its lease does.
//
// It can do no harm to a later holding of the same owner, because each holding has a name of its
// own in Redis. Only those of a writer that reads, and reads again, have one name: they are looked
// at first.
type janitor struct {
	client *Client

	wake chan struct{} // tells that there is something to do

	mu       sync.Mutex
	lanes    map[any]*lane // those that more may join, by lane.key; guarded by mu
	ready    []*lane       // to be served now, in this order; guarded by mu
	waiting  byDue         // to be served when they are due; guarded by mu
	underway int           // how many are being served; guarded by mu
	working  bool          // guarded by mu
	hung     bool          // the server has, while the client closed: leases end; guarded by mu
}

func newJanitor(c *Client) *janitor {
	return &janitor{client: c, wake: make(chan struct{}, 1), lanes: make(map[any]*lane)}
}

// leftover is what Redis may have of somebody who has left: a hold, or a place in a queue.
type leftover struct {
	lock  *Lock
	bid   bid
	until time.Time // when Redis will have removed it by itself
	// adrift tells that the command it is of may be executed later than what releases it, which is
	// repeated until then.
	adrift bool
	since  time.Time // when it was released first
	delay  backoff   // between two releases
	seat   *seat     // of a reader or writer, whose two sides have one name in Redis; else nil
}

// kept tells that Redis does not remove it by itself: as long as its owner reads, the field of a
// writer stays.
func (l leftover) kept() bool {
	if l.seat == nil || l.lock.side == shared {
		return false
	}
	reading := l.seat.held(shared)
	return reading != nil && reading.owner == l.bid.owner
}

// lane has leftovers that are released one command after the other: as many by each as it can, and
// those that come while one is under way by the next.
type lane struct {
	key   any // set by put; nil if no other leftover may join
	items []leftover
	due   time.Time // when it is to be served, while it waits
	tries backoff   // between commands that fail
}

// lane returns the key of the lane that l belongs in: that of its seat, from which one command is
// sent at a time, or of its lock if one command releases many; nil if it has a lane to itself.
func (l leftover) lane() any {
	switch {
	case l.seat != nil:
		return l.seat
	case l.lock.kind.batch() > 1:
		return lineName{l.lock.standing, l.lock.name}
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
func (j *janitor) add(l leftover) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.working {
		j.working = j.client.tasks.start(j.work)
	}
	if !j.working || j.hung {
		return
	}
	j.put(&lane{items: []leftover{l}})
	j.notify()
}

// put has a lane served next, after those before it: with the one that its leftovers belong in, if
// there is one. j.mu must be held.
func (j *janitor) put(ln *lane) {
	ln.key = ln.items[0].lane()
	if with := j.lanes[ln.key]; with != nil && with != ln {
		with.items = append(with.items, ln.items...)
		return
	}
	if ln.key != nil {
		j.lanes[ln.key] = ln
	}
	j.ready = append(j.ready, ln)
}

// notify has work look again.
func (j *janitor) notify() {
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

// mostAtOnce is how many commands of a client release leftovers at the same time. Callers may leave
// at any pace, however slow the answers are; one after the other would be too slow, and what they
// left keeps others out meanwhile.
const mostAtOnce = 64

// work serves lanes until there are none. When the client closes, everything gets one more try and
// no other, and none once the server has hung.
func (j *janitor) work() {
	p := j.client.patience(context.Background(), unlimited)
	var serving sync.WaitGroup
	defer serving.Wait()
	for {
		closing := p.reason() != nil
		ln, pause, ok := j.next(closing)
		switch {
		case !ok:
			return
		case ln != nil:
			serving.Go(func() { j.serve(ln, closing) })
		case closing:
			<-j.wake // until a command that is under way ends
		default:
			p.sleep(pause, j.wake)
		}
	}
}

// next takes a lane that is to be served now, or returns nil and how long to wait for one. If all
// is set, those count that are due later. With ok = false nothing is left, and the work is over:
// add begins it anew.
func (j *janitor) next(all bool) (ln *lane, pause time.Duration, ok bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	now := time.Now()
	for len(j.waiting) > 0 && (all || !j.waiting[0].due.After(now)) {
		j.put(heap.Pop(&j.waiting).(*lane))
	}
	switch {
	case j.underway == mostAtOnce || len(j.ready) == 0 && len(j.waiting) == 0 && j.underway > 0:
		return nil, time.Hour, true // the next command that ends wakes the work
	case len(j.ready) > 0:
		ln, j.ready[0] = j.ready[0], nil
		j.ready = j.ready[1:]
		j.underway++
		return ln, 0, true
	case len(j.waiting) > 0:
		return nil, j.waiting[0].due.Sub(now), true
	default:
		j.ready, j.waiting, j.working = nil, nil, false // nor does memory stay
		return nil, 0, false
	}
}

// serve releases what is first in a lane, by one command, and puts the lane back unless it is
// empty.
func (j *janitor) serve(ln *lane, closing bool) {
	began := time.Now()
	batch := slices.DeleteFunc(j.take(ln), func(l leftover) bool {
		return !began.Before(l.until) && !l.kept() // Redis has removed it by itself
	})
	done := len(batch) == 0 || j.release(batch...)

	j.mu.Lock()
	defer j.mu.Unlock()
	defer j.notify()
	j.underway--
	switch {
	case closing && !done && time.Since(began) > j.client.options.CommandTimeout:
		j.hung, j.lanes, j.ready, j.waiting = true, nil, nil, nil
	case closing || j.hung:
	case done:
		ln.tries = backoff{}
		for _, l := range batch {
			j.repeat(l)
		}
	default:
		ln.items = append(ln.items, batch...)
	}
	switch {
	case j.hung:
	case len(ln.items) == 0:
		delete(j.lanes, ln.key)
	case done || closing:
		j.put(ln)
	default:
		spaced := time.Duration(len(j.waiting)) * time.Second / 5000
		j.wait(ln, min(ln.tries.next(), max(longestDelay, spaced)))
	}
}

// longestDelay is how long what was not released waits for its next try: others wait for those
// locks. With more than 1,250 lanes that wait it grows with them, up to the second of a backoff, so
// that fewer commands go to a server that is down.
const longestDelay = 250 * time.Millisecond

// take takes as much off a lane as one command releases.
func (j *janitor) take(ln *lane) []leftover {
	j.mu.Lock()
	defer j.mu.Unlock()
	n := min(len(ln.items), ln.items[0].lock.kind.batch())
	batch := ln.items[:n:n]
	ln.items = ln.items[n:]
	return batch
}

// wait has a lane served after a pause. j.mu must be held.
func (j *janitor) wait(ln *lane, pause time.Duration) {
	ln.due = time.Now().Add(pause)
	heap.Push(&j.waiting, ln)
}

// repeat has what is adrift released once more later, until its time is over: there are not too
// many at a time, and the older it is the more seldom. j.mu must be held.
func (j *janitor) repeat(l leftover) {
	now := time.Now()
	if !l.adrift || !now.Before(l.until) {
		return
	}
	if l.since.IsZero() {
		l.since = now
	}
	pause := max(l.delay.next(), now.Sub(l.since)/4, time.Duration(len(j.waiting))*time.Second/500)
	j.wait(&lane{items: []leftover{l}}, pause)
}

// release removes a batch by one command, and returns false if that should be tried again. Those
// with a seat come alone.
func (j *janitor) release(batch ...leftover) bool {
	l, c := batch[0], j.client
	s, loose := l.seat, false
	if s != nil {
		if loose = s.disown(l.bid.owner, l.lock.side); !loose {
			if !s.tryClaim() {
				return false
			}
			defer s.pass()
			if s.held(l.lock.side) != nil { // under the same name: its own release removes both
				return true
			}
		}
	}
	bids := make([]bid, len(batch))
	for i, of := range batch {
		bids[i] = of.bid
	}
	reply, err := l.lock.kind.withdraw(c.redis, bids...)
	if err == nil {
		c.refused(l.lock, reply.Refusal)
	}
	if s != nil && l.lock.side == shared {
		switch doubt := err != nil && lua.ClassOf(err) == lua.Unknown; {
		case loose && !doubt:
			s.tighten(l.bid.owner)
		case doubt && !loose:
			s.loosen(l.bid.owner)
		}
	}
	return err == nil || c.hopeless(err)
}
