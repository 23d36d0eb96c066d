package redlock

import (
	"sync"

	"holdfast/internal/losses"
	"holdfast/internal/owner"
)

// place is where an owner stands with its holds of a lock.
type place struct {
	lock  identity
	token owner.Token
}

// seat is one owner's place at one lock. Whatever that owner asks the nodes about that lock, it asks from here, one thing
// after the other, so that goroutines that share an owner count their levels right.
type seat struct {
	place place
	users int           // guarded by registry.mu
	turn  chan struct{} // holds a value while somebody asks from this seat

	mu     sync.Mutex
	tenure *tenure // guarded by mu; nil while the owner does not hold the lock
}

// registry has the seats of this process that are in use.
type registry struct {
	mu    sync.Mutex
	seats map[place]*seat // guarded by mu
}

// lostTenures remembers lost tenures until all their levels have been unlocked, for Unlock without a
// hold.
var lostTenures losses.Memory[place, *tenure]

// seats are of the process and not of a Lock, because any number of those may be made of the same nodes.
var seats = registry{seats: make(map[place]*seat)}

// enter returns the seat at p. The caller leaves it when done; a tenure counts as a user of its own.
func (r *registry) enter(p place) *seat {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.seats[p]
	if s == nil {
		s = &seat{place: p, turn: make(chan struct{}, 1)}
		r.seats[p] = s
	}
	s.users++
	return s
}

func (r *registry) leave(s *seat) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.users--; s.users == 0 {
		delete(r.seats, s.place)
	}
}

// find returns the tenure at p; nil if there is none.
func (r *registry) find(p place) *tenure {
	r.mu.Lock()
	s := r.seats[p]
	r.mu.Unlock()
	if s == nil {
		return nil
	}
	return s.held()
}

// claim waits for the turn to ask from the seat, and returns false if p ended first.
func (s *seat) claim(p *patience) bool {
	select {
	case s.turn <- struct{}{}:
		return true
	default:
	}
	select {
	case s.turn <- struct{}{}:
		return true
	case <-p.over:
	case <-p.ctx.Done():
	}
	return false
}

// pass ends the turn.
func (s *seat) pass() { <-s.turn }

func (s *seat) held() *tenure {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tenure
}

// hold seats a tenure, until drop.
func (s *seat) hold(t *tenure) {
	seats.mu.Lock()
	s.users++
	seats.mu.Unlock()
	s.mu.Lock()
	lostTenures.Forget(s.place)
	before := s.tenure
	s.tenure = t
	s.mu.Unlock()
	if before != nil {
		seats.leave(s) // it is over, and its drop will not find it here any more
	}
}

// drop ends t's use of the seat. Once is enough; more does no harm.
func (s *seat) drop(t *tenure) {
	s.mu.Lock()
	mine := s.tenure == t
	if mine {
		s.tenure = nil
	}
	s.mu.Unlock()
	if mine {
		seats.leave(s)
	}
}
