package rlock

// All read holds of a writer have one name in Redis, that of its write hold. A release of one that
// got no answer may still be on its way, and would take the next one: it is loose. As long as the
// owner writes, that lets nobody else in. Afterwards the read hold cannot be trusted, and ends. If
// it is found to be gone before, that is why.

// loosen notes that a release of the owner's read holds may be under way, with nobody to wait for
// it.
func (s *seat) loosen(owner string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.countLoose(owner, 1)
}

// disown returns whether nothing is held from this seat under the owner's name. Then it counts the
// release of that side that its caller is about to send as loose. One of a write hold never is: who
// reads cannot write again under its name.
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

// tighten notes that a loose release has been executed. It still counts if it may have taken the
// present read hold, or one that is being taken or released.
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

// isLoose tells whether a release of the owner's read holds may be under way, or may have taken the
// present one.
func (s *seat) isLoose(owner string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.loose[owner] > 0
}

// settle ends a read hold that a loose release may take, now that no write hold of its owner keeps
// others out.
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
