package rlock

import (
	"context"
	"sync"
	"time"

	"holdfast/lua"
)

// janitor releases what an owner may hold without knowing it: after an acquire whose answer never came, a release without
// an answer, a renewal that may have been executed after its lease was given up. One goroutine, and only while there
// is something to do; each clean-up ends at the latest when the lease it is about has ended anyway.
type janitor struct {
	client *Client

	mu      sync.Mutex
	pending []cleanup // guarded by mu
	working bool      // guarded by mu
}

// cleanup is one owner's field to be removed from one lock. It uses a seat, and leaves it when it is done.
type cleanup struct {
	seat    *seat
	lock    *Lock
	until   time.Time // when Redis will have removed it by itself
	claimed bool      // it has the seat's turn
}

// done leaves the seat.
func (u cleanup) done() {
	if u.claimed {
		u.seat.pass()
	}
	u.seat.leave()
}

// add takes over u. It does not block.
func (j *janitor) add(u cleanup) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.pending = append(j.pending, u)
	if j.working {
		return
	}
	j.working = j.client.tasks.start(j.work)
	if !j.working { // the client is closed: the lease will end it
		u.done()
		j.pending = nil
	}
}

// work does what is pending until nothing is.
func (j *janitor) work() {
	p := j.client.patience(context.Background(), unlimited)
	var delay backoff
	for {
		j.mu.Lock()
		if len(j.pending) == 0 {
			j.working = false
			j.mu.Unlock()
			return
		}
		u := j.pending[0]
		j.pending = j.pending[1:]
		j.mu.Unlock()

		if j.clean(&u) {
			u.done()
			delay = backoff{}
			continue
		}
		// When the client closes, everything gets one more try and no other.
		if p.reason() != nil {
			u.done()
			continue
		}
		j.mu.Lock()
		j.pending = append(j.pending, u)
		j.mu.Unlock()
		p.sleep(delay.next(), nil)
	}
}

// clean does one clean-up, and returns false if it is to be tried again.
func (j *janitor) clean(u *cleanup) bool {
	if !time.Now().Before(u.until) {
		return true
	}
	if !u.claimed {
		if u.claimed = u.seat.tryClaim(); !u.claimed {
			return false
		}
	}
	if u.seat.held() != nil {
		return true // the owner has the lock again, and its last release will remove the field
	}
	c := j.client
	reply, err := lua.Release(context.Background(), c.redis, u.lock.name, u.seat.place.owner, 0,
		c.wire.announcement(u.lock.channel, lua.Unlocked))
	if err == nil {
		c.refused(u.lock, reply.Refusal)
	}
	return err == nil || lua.ClassOf(err) == lua.Permanent
}
