package rlock

import (
	"context"
	"slices"
	"sync"
	"time"

	"holdfast/lua"
)

// janitor releases what may be held in Redis though nobody here holds it: after an acquire whose answer never came, a
// release without an answer, a renewal that may have been executed after its lease was given up. It is one goroutine,
// and only while there is something to do. Each leftover ends at the latest when its lease does.
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
		l, pause, ok := j.next(closing)
		began := time.Now()
		switch {
		case !ok:
			return
		case pause > 0:
			p.sleep(pause, j.wake)
		case closing:
			batch := j.batch(l)
			if len(batch) > 0 && !j.release(batch...) && time.Since(began) > j.client.options.CommandTimeout {
				j.drop()
				return
			}
		default:
			batch := j.batch(l)
			if len(batch) == 0 || j.release(batch...) {
				delay = backoff{}
				for _, done := range batch {
					j.repeat(done)
				}
				continue
			}
			for _, failed := range batch {
				j.add(failed)
			}
			p.sleep(min(delay.next(), longestDelay), nil)
		}
	}
}

// batch returns l, and takes off the list what the command that releases l can release as well: without those that Redis has
// removed by itself.
func (j *janitor) batch(l leftover) (batch []leftover) {
	now := time.Now()
	take := func(l leftover) {
		if now.Before(l.until) || l.kept() {
			batch = append(batch, l)
		}
	}
	take(l)
	most := l.lock.kind.batch()
	if most == 1 {
		return batch
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.pending = slices.DeleteFunc(j.pending, func(other leftover) bool {
		same := len(batch) < most && other.lock.name == l.lock.name && other.lock.standing == l.lock.standing
		if same {
			take(other)
		}
		return same
	})
	return batch
}

// next takes a leftover off its list, or tells how long there is nothing to do. If there is none, the work is over. With all
// those count that are to be released later.
func (j *janitor) next(all bool) (l leftover, pause time.Duration, ok bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.again) > 0 {
		pause = time.Until(j.again[0].due)
	}
	switch due := len(j.again) > 0 && (pause <= 0 || all); {
	case due && (len(j.pending) == 0 || !j.repeats): // in turn: neither waits until there are none of the others
		l, j.again, j.repeats = j.again[0], j.again[1:], true
		return l, 0, true
	case len(j.pending) > 0:
		l, j.pending, j.repeats = j.pending[0], j.pending[1:], false
		return l, 0, true
	default:
		j.working = pause > 0
		return leftover{}, pause, j.working
	}
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
