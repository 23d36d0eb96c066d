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
	again   []leftover // that were released, and will be once more, the earliest first; guarded by mu
	working bool       // guarded by mu
	repeats bool       // the latest was one of again; guarded by mu
}

func newJanitor(c *Client) *janitor { return &janitor{client: c, wake: make(chan struct{}, 1)} }

// leftover is what Redis may have of somebody who has left: a hold, or a place in a queue.
type leftover struct {
	lock  *Lock
	bid   bid
	until time.Time // when Redis will have removed it by itself
	// adrift tells that the command it is of may be executed later than what releases it, which is repeated until then.
	adrift bool
	since  time.Time // when that was done first
	due    time.Time // when that is next
	delay  backoff   // between two times
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
	j.mu.Lock()
	defer j.mu.Unlock()
	if l.since.IsZero() {
		l.since = now
	}
	l.due = now.Add(max(l.delay.next(), now.Sub(l.since)/4, time.Duration(len(j.again))*2*time.Millisecond))
	at, _ := slices.BinarySearchFunc(j.again, l.due, func(of leftover, due time.Time) int { return of.due.Compare(due) })
	j.again = slices.Insert(j.again, at, l)
}

// longestDelay is how long what is pending waits at most when a release has failed. Others wait for those locks.
const longestDelay = 250 * time.Millisecond

// work releases what is pending until nothing is. When the client closes, everything gets one more try and no other, and none
// once the server has hung: leases end.
func (j *janitor) work() {
	p := j.client.patience(context.Background(), unlimited)
	var delay backoff
	for {
		closing := p.reason() != nil
		round, pause, ok := j.next(closing)
		began := time.Now()
		switch {
		case !ok:
			return
		case pause > 0:
			p.sleep(pause, j.wake)
		case j.releaseAll(round, closing):
			delay = backoff{}
		case !closing:
			p.sleep(min(delay.next(), longestDelay), nil)
		case time.Since(began) > j.client.options.CommandTimeout:
			j.drop()
			return
		}
	}
}

// releaseAll releases a round, each batch by one command and all of them at once. It returns false if something failed, which is
// to be tried again unless the client closes.
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
				j.add(l)
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

// mostAtOnce is how many commands release leftovers at the same time. Callers leave at any rate, however long an answer takes, so
// one after the other would be too slow: meanwhile what they left keeps others out.
const mostAtOnce = 64

// next takes what is to be released now off the lists, in batches of what one command releases; or tells how long there is nothing
// to do. If there is none, the work is over. With all those count that are to be released later.
func (j *janitor) next(all bool) (round [][]leftover, pause time.Duration, ok bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for {
		if pause = 0; len(j.again) > 0 {
			pause = time.Until(j.again[0].due)
		}
		due := len(j.again) > 0 && (pause <= 0 || all)
		from := &j.pending
		if j.repeats = due && (len(j.pending) == 0 || !j.repeats); j.repeats { // in turn: neither waits until there are none of the others
			from = &j.again
		} else if len(j.pending) == 0 {
			break
		}
		var fits bool
		if round, fits = (*from)[0].joins(round); !fits {
			break
		}
		*from = (*from)[1:]
	}
	if len(round) > 0 {
		return round, 0, true
	}
	j.working = pause > 0
	return nil, pause, j.working
}

// joins adds l to a round, in a batch that it may share or one of its own. It returns false if there is no room left, or if it has
// to wait for another one's turn at its seat.
func (l leftover) joins(round [][]leftover) (more [][]leftover, fits bool) {
	for i, batch := range round {
		of := batch[0]
		switch {
		case l.seat != nil && of.seat == l.seat:
			return round, false
		case len(batch) < l.lock.kind.batch() && of.lock.name == l.lock.name && of.lock.standing == l.lock.standing:
			round[i] = append(batch, l)
			return round, true
		}
	}
	if len(round) == mostAtOnce {
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

// release removes a batch, and returns false if that should be tried again.
func (j *janitor) release(batch ...leftover) bool {
	l, c := batch[0], j.client
	s, loose := l.seat, false
	if s != nil {
		if loose = s.disown(l.bid.owner, l.lock.side); !loose {
			if !s.tryClaim() {
				return false
			}
			defer s.pass()
			if s.held(l.lock.side) != nil {
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
