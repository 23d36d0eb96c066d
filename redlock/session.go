package redlock

import (
	"holdfast/internal/losses"
	"holdfast/internal/owner"
	"holdfast/internal/session"
)

// sessionKey identifies what one owner has with one lock.
type sessionKey struct {
	lock  identity
	token owner.Token
}

type lockSession = session.Session[sessionKey, *acquisition]

// sessions has the sessions of this process. It does not belong to a Lock, because any number of
// Locks may be made of the same nodes. The state of a session is what its owner holds; nil if that
// is nothing.
var sessions = session.New[sessionKey, *acquisition]()

// lostAcquisitions remembers the acquisitions that were lost until all their levels have been
// unlocked, for Unlock without a hold.
var lostAcquisitions losses.Memory[sessionKey, *acquisition]

// heldIn returns what the owner of a session holds; nil if that is nothing.
func heldIn(s *lockSession) (a *acquisition) {
	s.Do(func(state **acquisition) { a = *state })
	return a
}

// attach stores an acquisition in its session, which it uses until detach.
func attach(s *lockSession, a *acquisition) {
	var before *acquisition
	s.Use()
	s.Do(func(state **acquisition) {
		lostAcquisitions.Forget(s.Key())
		before, *state = *state, a
	})
	if before != nil {
		s.Close() // it is over, and its detach will not find it here any more
	}
}

// detach removes an acquisition from its session. More calls do nothing.
func detach(s *lockSession, a *acquisition) {
	mine := false
	s.Do(func(state **acquisition) {
		if mine = *state == a; mine {
			*state = nil
		}
	})
	if mine {
		s.Close()
	}
}
