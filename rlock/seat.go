package rlock

import (
	"slices"
	"sync"
)

// seat is one owner's place at one lock. Whatever that owner asks Redis about that lock, it asks from here, one thing
// after the other: so that goroutines which share an owner count their levels right.
type seat struct {
	registry *registry
	place    place
	users    int // guarded by registry.mu

	mu       sync.Mutex
	busy     bool            // somebody talks to Redis from this seat; guarded by mu
	turns    []chan struct{} // of those who wait for that, each closed when it is theirs; guarded by mu
	holdings [sides]*holding // guarded by mu; nil while the owner does not hold that side

	// loose counts, for names of writers that read, releases of the read lock that may be under way though nobody waits for
	// them any more: each takes whatever read hold it finds under that name. Guarded by mu; nil as long as there was none.
	loose map[string]int
}

// registry has the seats of a client that are in use.
type registry struct {
	mu    sync.Mutex
	seats map[place]*seat // guarded by mu
}

func newRegistry() *registry {
	return &registry{seats: make(map[place]*seat)}
}

// enter returns the seat at p. The caller leaves it when done.
func (r *registry) enter(p place) *seat {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.seats[p]
	if s == nil {
		s = new(seat)
		r.add(s, p)
	}
	s.users++
	return s
}

// enterNew makes s the seat at p, for an owner that nobody else knows yet. The caller has the turn there, and leaves it when
// done.
func (r *registry) enterNew(s *seat, p place) *seat {
	s.users, s.busy = 1, true
	r.mu.Lock()
	defer r.mu.Unlock()
	r.add(s, p)
	return s
}

// add is called while mu is held.
func (r *registry) add(s *seat, p place) {
	s.registry, s.place = r, p
	r.seats[p] = s
}

// leave gives the seat up. A holding counts as a user of its own.
func (s *seat) leave() {
	r := s.registry
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.users--; s.users == 0 {
		delete(r.seats, s.place)
	}
}

// find returns the holding of a side at p; nil if there is none.
func (r *registry) find(p place, of side) *holding {
	r.mu.Lock()
	s := r.seats[p]
	r.mu.Unlock()
	if s == nil {
		return nil
	}
	return s.held(of)
}

// holdings returns what is held at present.
func (r *registry) holdings() []*holding {
	r.mu.Lock()
	seats := make([]*seat, 0, len(r.seats))
	for _, s := range r.seats {
		seats = append(seats, s)
	}
	r.mu.Unlock()
	held := make([]*holding, 0, len(seats))
	for _, s := range seats {
		for of := range sides {
			if h := s.held(of); h != nil {
				held = append(held, h)
			}
		}
	}
	return held
}

// tryClaim takes the turn to talk to Redis if nobody has it.
func (s *seat) tryClaim() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy {
		return false
	}
	s.busy = true
	return true
}

// claim waits for the turn to talk to Redis, and returns false if p ended first.
func (s *seat) claim(p *patience) bool {
	s.mu.Lock()
	if !s.busy {
		s.busy = true
		s.mu.Unlock()
		return true
	}
	turn := make(chan struct{})
	s.turns = append(s.turns, turn)
	s.mu.Unlock()
	select {
	case <-turn:
		return true
	case <-p.timeout():
	case <-p.ctx.Done():
	case <-p.closing:
	}
	s.mu.Lock()
	i := slices.Index(s.turns, turn)
	if i >= 0 {
		s.turns = slices.Delete(s.turns, i, i+1)
	}
	s.mu.Unlock()
	if i < 0 {
		s.pass() // it came just now
	}
	return false
}

// pass ends the turn.
func (s *seat) pass() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.turns) == 0 {
		s.busy = false
		return
	}
	close(s.turns[0])
	s.turns = slices.Delete(s.turns, 0, 1)
}

// held returns what is held of a side from this seat; nil if nothing is.
func (s *seat) held(of side) *holding {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.holdings[of]
}

// owner is the name in Redis of who holds anything from this seat; "" if nobody does. Both sides of a read-write lock are
// held under one name, or a writer could not read.
func (s *seat) owner() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.holdings {
		if h != nil {
			return h.owner
		}
	}
	return ""
}

// hold seats a new holding, which is a user of the seat until drop.
func (s *seat) hold(h *holding) {
	s.registry.mu.Lock()
	s.users++
	s.registry.mu.Unlock()
	s.mu.Lock()
	s.holdings[h.lock.side] = h
	s.mu.Unlock()
}

// drop ends h's use of the seat. Once is enough; more does no harm.
func (s *seat) drop(h *holding) {
	s.mu.Lock()
	mine := s.holdings[h.lock.side] == h
	if mine {
		s.holdings[h.lock.side] = nil
	}
	s.mu.Unlock()
	if mine {
		s.leave()
	}
}
