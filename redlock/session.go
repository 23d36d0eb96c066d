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

// sessions are of the process and not of a Lock, because any number of those may be made of the
// same nodes. The state of each is what its owner holds; nil if that is nothing.
var sessions = session.New[sessionKey, *acquisition]()

// lostAcquisitions remembers what was lost until all its levels have been unlocked, for Unlock
// without a hold.
var lostAcquisitions losses.Memory[sessionKey, *acquisition]

// heldIn returns what is held in a session; nil if nothing is.
func heldIn(s *lockSession) (a *acquisition) {
	s.Do(func(state **acquisition) { a = *state })
	return a
}

// keep makes an acquisition that of its session, which it uses until drop.
func attach(s *lockSession, a *acquisition) {
	var before *acquisition
	s.Use()
	s.Do(func(state **acquisition) {
		lostAcquisitions.Forget(s.Key())
		before, *state = *state, a
	})
	if before != nil {
		s.Close() // it is over, and its drop will not find it here any more
	}
}

// drop ends an acquisition's use of its session. Once is enough; more does no harm.
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
