package rlock

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/lua"
)

// janitor releases what may be held in Redis though nobody here holds it: after an acquire whose answer never came, a
// release without an answer, a renewal that may have been executed after its lease was given up. It has goroutines only while
// there is something to do. Each leftover ends at the latest when its lease does.
//
// It can do no harm to a later holding of the same owner, because each holding has a name of its own in Redis. Only those
// of a writer that reads, and reads again, have one name: they are looked at first.
type janitor struct {
	client *Client

	wake chan struct{} // tells that something is pending

	mu      sync.Mutex
	pending []leftover // guarded by mu
	again   []leftover // those that wait until they are due, for a retry or a repeat; guarded by mu
	working bool       // guarded by mu
}

func newJanitor(c *Client) *janitor { return &janitor{client: c, wake: make(chan struct{}, 1)} }

// leftover is what Redis may have of somebody who has left: a hold, or a place in a queue.
type leftover struct {
	lock  *Lock
	bid   bid
	until time.Time // when Redis will have removed it by itself
	// adrift tells that the command it is of may be executed later than what releases it, which is repeated until then.
	adrift bool
	since  time.Time // when it was released first
	due    time.Time // when it is to be released next
	delay  backoff   // between repeats of a release that succeeded
	tries  backoff   // between retries of one that failed
	seat   *seat     // of a reader or writer, whose two sides have one name in Redis; else nil
}

// kept tells that Redis does not remove it by itself: as long as its owner reads, the field of a writer stays.
func (l leftover) kept() bool {
	if l.seat == nil || l.lock.side == shared {
		return false
	}
	reading := l.seat.held(shared)
	return reading != nil && reading.owner == l.bid.owner
}

// add takes over l. It does not block. After Close it does nothing: the lease will end.
func (j *janitor) add(l leftover) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.working {
		j.working = j.client.tasks.start(j.work)
	}
	if j.working {
		j.pending = append(j.pending, l)
		select {
		case j.wake <- struct{}{}:
		default:
		}
	}
}

// repeat has what is adrift released once more later, until its time is over: there are not too many at a time, and the older
// it is the more seldom.
func (j *janitor) repeat(l leftover) {
	now := time.Now()
	if !l.adrift || !now.Before(l.until) {
		return
	}
	if l.since.IsZero() {
		l.since = now
	}
	l.tries = backoff{}
	j.later(l, max(l.delay.next(), now.Sub(l.since)/4), repeatSpacing)
}

const (
	// longestDelay is how long a retry waits at most, while it is not one of more than a thousand. Others wait for those locks.
	longestDelay  = 250 * time.Millisecond
	retrySpacing  = time.Second / 5000 // about 5000 retries a second at most
	repeatSpacing = time.Second / 500  // about 500 repeats a second at most
)

// retry has l, whose release failed, released later. Others are meanwhile.
func (j *janitor) retry(l leftover) { j.later(l, min(l.tries.next(), longestDelay), retrySpacing) }

// later has l released after pause, or after spacing for each one that waits already if that is longer.
func (j *janitor) later(l leftover, pause, spacing time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	l.due = time.Now().Add(max(pause, time.Duration(len(j.again))*spacing))
	j.again = append(j.again, l)
}

// work releases what is pending until nothing is. When the client closes, everything gets one more try and no other, and none
// once the server has hung: leases end.
func (j *janitor) work() {
	p := j.client.patience(context.Background(), unlimited)
	for {
		closing := p.reason() != nil
		round, pause, ok := j.next(closing)
		if !ok {
			return
		}
		if len(round) == 0 {
			p.sleep(max(pause, 5*time.Millisecond), j.wake) // those that are due soon after one another go together
			continue
		}
		began := time.Now()
		if !j.releaseAll(round, closing) && closing && time.Since(began) > j.client.options.CommandTimeout {
			j.drop()
			return
		}
	}
}

// releaseAll releases a round, each batch by one command and all of them at once, and returns when the last has its answer. It
// returns false if something was not released, which is tried again unless the client closes.
func (j *janitor) releaseAll(round [][]leftover, closing bool) bool {
	var failed atomic.Bool
	release := func(batch []leftover) {
		now := time.Now()
		batch = slices.DeleteFunc(batch, func(l leftover) bool { return !now.Before(l.until) && !l.kept() }) // Redis has done it
		done := len(batch) == 0 || j.release(batch...)
		if !done {
			failed.Store(true)
		}
		for _, l := range batch {
			switch {
			case closing:
			case done:
				j.repeat(l)
			default:
				j.retry(l)
			}
		}
	}
	var others sync.WaitGroup
	for _, batch := range round[1:] {
		others.Go(func() { release(batch) })
	}
	release(round[0])
	others.Wait()
	return !failed.Load()
}

// mostAtOnce is how many commands of a client release leftovers at the same time. Callers may leave at any pace, however slow the
// answers are; one after the other would be too slow, and what they left keeps others out meanwhile.
const mostAtOnce = 64

// next takes the next round off the lists, in batches of what one command releases: what has been pending longest, and then what
// has become due; if all is set, also what is due later. pause is the time until the earliest of the others is due, 0 if there
// are none. With ok = false nothing is left, and the work is over: add begins it anew.
func (j *janitor) next(all bool) (round [][]leftover, pause time.Duration, ok bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	now := time.Now()
	j.again = slices.DeleteFunc(j.again, func(l leftover) bool {
		left := l.due.Sub(now)
		if all || left <= 0 {
			j.pending = append(j.pending, l)
			return true
		}
		if pause == 0 || left < pause {
			pause = left
		}
		return false
	})
	j.pending = slices.DeleteFunc(j.pending, func(l leftover) (fits bool) {
		round, fits = l.join(round)
		return fits
	})
	j.working = len(round) > 0 || pause > 0
	return round, pause, j.working
}

// join returns the round with l in it, in a batch that it may share or in one of its own. It returns false if there is no room left,
// or if the round has one of the same seat, of which there can be one command at a time.
func (l leftover) join(round [][]leftover) (with [][]leftover, fits bool) {
	most, full := l.lock.kind.batch(), len(round) == mostAtOnce
	if full && most == 1 { // nothing to look for: this is asked for each of thousands
		return round, false
	}
	for i, batch := range round {
		of := batch[0]
		switch {
		case l.seat != nil && of.seat == l.seat:
			return round, false
		case len(batch) < most && of.lock.name == l.lock.name && of.lock.standing == l.lock.standing:
			round[i] = append(batch, l)
			return round, true
		}
	}
	if full {
		return round, false
	}
	return append(round, []leftover{l}), true
}

// drop ends the work with things left to do.
func (j *janitor) drop() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.pending, j.again, j.working = nil, nil, false
}

// release removes a batch by one command, and returns false if that should be tried again. Those with a seat come alone.
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
