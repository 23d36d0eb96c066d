package rlock

// A writer that reads has one name in Redis for both. When it has given back its read lock, and takes it once more, a
// release of the first that got no answer may still be on its way, and would take the second: it is loose. As long as the
// owner writes, that does no harm: nobody else gets in, and a release that finds nothing to release has done its work.
// Afterwards the read hold cannot be trusted, and ends.

// loosen notes that a release of the owner's read holds may be under way, with nobody to wait for it.
func (s *seat) loosen(owner string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.countLoose(owner, 1)
}

// disown is loosen before a release of that side, unless something is held from this seat under the owner's name: then it
// returns false and does nothing. No release of a write hold is loose: who reads cannot write again under its name.
func (s *seat) disown(owner string, of side) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.holdings {
		if h != nil && h.owner == owner {
			return false
		}
	}
	if of == shared {
		s.countLoose(owner, 1)
	}
	return true
}

// countLoose counts so many releases more. The seat's mutex must be held.
func (s *seat) countLoose(owner string, more int) {
	if s.loose == nil {
		s.loose = make(map[string]int)
	}
	if s.loose[owner] += more; s.loose[owner] <= 0 {
		delete(s.loose, owner)
	}
}

// tighten notes that a loose release has been executed. If it may have taken something it is left in the books.
func (s *seat) tighten(owner string) {
	if !s.tryClaim() {
		return
	}
	defer s.pass()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holdings[shared] == nil {
		s.countLoose(owner, -1)
	}
}

// isLoose tells whether a release of the owner's read holds may be under way, or may have taken the present one.
func (s *seat) isLoose(owner string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.loose[owner] > 0
}

// settle ends a read hold that a loose release may take, now that no write hold of its owner keeps others out.
func (s *seat) settle() {
	s.mu.Lock()
	h := s.holdings[shared]
	if h != nil && (s.holdings[exclusive] != nil || s.loose[h.owner] <= 0) {
		h = nil
	}
	s.mu.Unlock()
	if h != nil {
		h.lost(errLoose)
	}
}
