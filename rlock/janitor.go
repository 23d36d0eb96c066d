package rlock

import (
	"context"
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

	mu      sync.Mutex
	pending []leftover // guarded by mu
	working bool       // guarded by mu
}

// leftover is what Redis may have of somebody who has left: a hold, or a place in a queue.
type leftover struct {
	lock  *Lock
	bid   bid
	until time.Time // when Redis will have removed it by itself
	// adrift tells that the command it is of may be executed later than what releases it, which is repeated until then.
	adrift bool
	seat   *seat // of a reader or writer, whose two sides have one name in Redis; else nil
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
	}
}

// work releases what is pending until nothing is. When the client closes, everything gets one more try and no other.
func (j *janitor) work() {
	p := j.client.patience(context.Background(), unlimited)
	var delay backoff
	for {
		l, ok := j.next()
		switch {
		case !ok:
			return
		case j.release(l) && (!l.adrift || !time.Now().Before(l.until)):
			delay = backoff{}
		case p.reason() == nil:
			j.add(l)
			p.sleep(delay.next(), nil)
		}
	}
}

// next takes a leftover off the list. If there is none, the work is over.
func (j *janitor) next() (l leftover, ok bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.pending) == 0 {
		j.working = false
		return leftover{}, false
	}
	l = j.pending[0]
	j.pending = j.pending[1:]
	return l, true
}

// release removes it, and returns false if that should be tried again.
func (j *janitor) release(l leftover) bool {
	if !time.Now().Before(l.until) && !l.kept() {
		return true
	}
	c := j.client
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
	reply, err := l.lock.kind.withdraw(c.redis, l.bid)
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
