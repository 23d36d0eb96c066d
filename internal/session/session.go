// Package session keeps what owners have with locks in this process. The mutex of a [Session] makes
// an owner send its commands about a lock one at a time. Goroutines with the same owner therefore
// count their levels correctly.
package session

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"holdfast/internal/wait"
)

// Sessions has the sessions in use, by key. All methods are safe for concurrent use.
type Sessions[Key comparable, State any] struct {
	mu   sync.Mutex
	open map[Key]*Session[Key, State] // guarded by mu
}

// New returns an empty Sessions.
func New[Key comparable, State any]() *Sessions[Key, State] {
	return &Sessions[Key, State]{open: make(map[Key]*Session[Key, State])}
}

// Session is what an owner has with a lock. A Session has a state and a mutex, and a caller can
// stop waiting for the mutex. A Session exists while somebody uses it. All methods are safe for
// concurrent use.
type Session[Key comparable, State any] struct {
	all     *Sessions[Key, State]
	key     Key
	users   atomic.Int32 // -1 once the session is removed
	entered atomic.Bool  // is or was in all.open; then users leaves 0 only with all.mu held

	mu     sync.Mutex
	locked bool            // guarded by mu
	queue  []chan struct{} // of callers of Lock; closed to pass the mutex on; guarded by mu
	state  State           // guarded by mu
}

// Open returns the session with a key, and creates the session if necessary. The caller closes the
// session.
func (ss *Sessions[Key, State]) Open(key Key) *Session[Key, State] {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	s := ss.open[key]
	if s == nil {
		s = &Session[Key, State]{all: ss, key: key}
		s.entered.Store(true)
		ss.open[key] = s
	}
	s.users.Add(1)
	return s
}

// OpenNew makes s the locked session with a new key. Nobody finds s before [Session.Enter]. The
// caller unlocks and closes s.
func (ss *Sessions[Key, State]) OpenNew(s *Session[Key, State], key Key) {
	s.all, s.key, s.locked = ss, key, true
	s.users.Store(1)
}

// Find returns the entered session with a key, or nil if nobody uses it. The caller does not close
// it.
func (ss *Sessions[Key, State]) Find(key Key) *Session[Key, State] {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.open[key]
}

// All returns all entered sessions in use. The caller does not close them.
func (ss *Sessions[Key, State]) All() []*Session[Key, State] {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return slices.Collect(maps.Values(ss.open))
}

// Key returns the key of the session.
func (s *Session[Key, State]) Key() Key { return s.key }

// Use adds a user of the session. The session must be in use. The new user calls Close at the end.
func (s *Session[Key, State]) Use() { s.users.Add(1) }

// Enter makes Open and Find return the session for its key. The session must be in use.
func (s *Session[Key, State]) Enter() {
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	if !s.entered.Swap(true) && s.users.Load() > 0 { // the last Close locks all.mu from now on
		s.all.open[s.key] = s
	}
}

// Close ends a use of the session. The last Close removes the session.
func (s *Session[Key, State]) Close() {
	if s.users.Add(-1) > 0 || !s.entered.Load() {
		return
	}
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	// Another user may have opened or removed the session, or the last use ended before Enter.
	if s.users.CompareAndSwap(0, -1) && s.all.open[s.key] == s {
		delete(s.all.open, s.key)
	}
}

// Do calls f with the state, and holds the mutex that guards the state. f must not block.
func (s *Session[Key, State]) Do(f func(*State)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.state)
}

// TryLock locks the session without blocking, and reports whether it succeeded.
func (s *Session[Key, State]) TryLock() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.locked {
		return false
	}
	s.locked = true
	return true
}

// Lock locks the session after all earlier callers, and returns true. Lock returns false if b ends
// first.
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
	defer s.mu.Unlock()
	i := slices.Index(s.queue, ready)
	if i < 0 {
		return true // Unlock has just passed the mutex to this caller
	}
	s.queue = slices.Delete(s.queue, i, i+1)
	return false
}

// Unlock unlocks the session, or passes the mutex to the next caller of Lock.
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

// LockAll locks several sessions. LockAll returns -1, or the index of the session at which b ended.
//
// While LockAll is blocked on a session, it keeps no other session locked. Another call of the
// owner may keep the session for as long as that call waits for its lock. Calls about the other
// locks must not wait for that call.
func LockAll[Key comparable, State any](b *wait.Budget, sessions []*Session[Key, State]) int {
	first := 0
	for sessions[first].Lock(b) {
		taken := slices.IndexFunc(sessions, func(s *Session[Key, State]) bool {
			return s != sessions[first] && !s.TryLock()
		})
		if taken < 0 {
			return -1
		}
		for i, s := range sessions {
			if i < taken || i == first { // locked so far
				s.Unlock()
			}
		}
		first = taken
	}
	return first
}
