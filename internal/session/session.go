// Package session has what one owner has with one lock in this process: a [Session], whose mutex
// sends the owner's commands about that lock one at a time, so that goroutines that share an owner
// count their levels right. What is held is up to the package that uses it.
package session

import (
	"slices"
	"sync"

	"holdfast/internal/wait"
)

// Sessions has the sessions in use, by key. State is what each of them keeps. All methods are safe
// for concurrent use.
type Sessions[Key comparable, State any] struct {
	mu   sync.Mutex
	open map[Key]*Session[Key, State] // guarded by mu
}

// New returns an empty Sessions.
func New[Key comparable, State any]() *Sessions[Key, State] {
	return &Sessions[Key, State]{open: make(map[Key]*Session[Key, State])}
}

// Session is one owner's session with one lock: a mutex whose Lock can be given up, and a state. It
// exists as long as somebody uses it. All methods are safe for concurrent use.
type Session[Key comparable, State any] struct {
	all   *Sessions[Key, State]
	key   Key
	users int // guarded by all.mu

	mu     sync.Mutex
	locked bool            // guarded by mu
	queue  []chan struct{} // of callers of Lock, each closed when it has the mutex; guarded by mu
	state  State           // guarded by mu
}

// Open returns the session with a key. The caller closes it.
func (ss *Sessions[Key, State]) Open(key Key) *Session[Key, State] {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	s := ss.open[key]
	if s == nil {
		s = &Session[Key, State]{all: ss, key: key}
		ss.open[key] = s
	}
	s.users++
	return s
}

// OpenNew makes s the session with a key that nobody else knows. The caller has it locked, and
// unlocks and closes it.
func (ss *Sessions[Key, State]) OpenNew(s *Session[Key, State], key Key) {
	s.all, s.key, s.users, s.locked = ss, key, 1, true
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.open[key] = s
}

// Find returns the session with a key, or nil if nobody uses it. The caller does not close it.
func (ss *Sessions[Key, State]) Find(key Key) *Session[Key, State] {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.open[key]
}

// All returns the sessions in use. The caller does not close them.
func (ss *Sessions[Key, State]) All() []*Session[Key, State] {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	sessions := make([]*Session[Key, State], 0, len(ss.open))
	for _, s := range ss.open {
		sessions = append(sessions, s)
	}
	return sessions
}

// Key returns the key of the session.
func (s *Session[Key, State]) Key() Key { return s.key }

// Use counts one more user, which closes the session: what is held keeps its session.
func (s *Session[Key, State]) Use() {
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	s.users++
}

// Close ends a use of the session. After the last the session is forgotten.
func (s *Session[Key, State]) Close() {
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	if s.users--; s.users == 0 {
		delete(s.all.open, s.key)
	}
}

// Do calls f with the state, while nobody else has it. f must not block.
func (s *Session[Key, State]) Do(f func(*State)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.state)
}

// TryLock locks the session if nobody has.
func (s *Session[Key, State]) TryLock() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.locked {
		return false
	}
	s.locked = true
	return true
}

// Lock locks the session, waiting behind the callers before. It returns false if b ended first.
func (s *Session[Key, State]) Lock(b *wait.Budget) bool {
	s.mu.Lock()
	if !s.locked {
		s.locked = true
		s.mu.Unlock()
		return true
	}
	ready := make(chan struct{})
	s.queue = append(s.queue, ready)
	s.mu.Unlock()
	if b.Wait(ready) {
		return true
	}
	s.mu.Lock()
	i := slices.Index(s.queue, ready)
	if i >= 0 {
		s.queue = slices.Delete(s.queue, i, i+1)
	}
	s.mu.Unlock()
	if i < 0 {
		s.Unlock() // it was locked for this caller just now
	}
	return false
}

// Unlock unlocks the session, for the next caller of Lock if there is one.
func (s *Session[Key, State]) Unlock() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		s.locked = false
		return
	}
	close(s.queue[0])
	s.queue = slices.Delete(s.queue, 0, 1)
}

// LockAll locks several sessions. It holds none while it waits for one: another call of the same
// owner may hold that for as long as it waits for its lock, and whoever releases or extends another
// of the locks must not wait for that. It returns -1, or the index of the session that b ended at.
func LockAll[Key comparable, State any](b *wait.Budget, sessions []*Session[Key, State]) int {
	first := 0
	for sessions[first].Lock(b) {
		taken := slices.IndexFunc(sessions, func(s *Session[Key, State]) bool {
			return s != sessions[first] && !s.TryLock()
		})
		if taken < 0 {
			return -1
		}
		for i, s := range sessions[:taken] {
			if i != first {
				s.Unlock()
			}
		}
		sessions[first].Unlock()
		first = taken
	}
	return first
}
