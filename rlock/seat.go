package rlock

import "sync"

// seat is one owner's place at one lock. Whatever that owner asks Redis about that lock, it asks from here, one thing
// after the other: so that goroutines which share an owner count their levels right.
type seat struct {
	registry *registry
	place    place
	users    int           // guarded by registry.mu
	turn     chan struct{} // holds a value while somebody talks to Redis from this seat

	mu       sync.Mutex
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
		s = &seat{registry: r, place: p, turn: make(chan struct{}, 1)}
		r.seats[p] = s
	}
	s.users++
	return s
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
	select {
	case s.turn <- struct{}{}:
		return true
	default:
		return false
	}
}

// claim waits for the turn to talk to Redis, and returns false if p ended first.
func (s *seat) claim(p *patience) bool {
	if s.tryClaim() {
		return true
	}
	select {
	case s.turn <- struct{}{}:
		return true
	case <-p.timeout():
	case <-p.ctx.Done():
	case <-p.closing:
	}
	return false
}

// pass ends the turn.
func (s *seat) pass() { <-s.turn }

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
