package rlock

import (
	"context"
	"errors"

	"github.com/redis/rueidis"

	"holdfast/lua"
	"holdfast/watchdog"
)

// All read holds of a writer have one name in Redis, that of its write hold. A release of one that
// got no reply is unconfirmed: it may still be under way, and would release the next one. While the
// owner writes, that lets nobody else in. Afterwards the read hold cannot be trusted, and ends. If
// it is found gone before, this is the reason.

// errUnconfirmed is the reason of the loss of a read hold when the release of an earlier one of the
// same writer got no reply. Both have one name in Redis, so that release removes whichever it
// finds.
var errUnconfirmed = errors.New(
	"an earlier release by the same owner, which got no answer, has taken it or may still do so",
)

// count adds more to the unconfirmed releases of an owner's read holds.
func (ow *owned) count(owner string, more int) {
	if ow.unconfirmed == nil {
		ow.unconfirmed = make(map[string]int)
	}
	if ow.unconfirmed[owner] += more; ow.unconfirmed[owner] <= 0 {
		delete(ow.unconfirmed, owner)
	}
}

// unanswered notes that a release of the owner's read holds may be under way while nobody waits for
// its reply.
func (k read) unanswered(a *acquisition) {
	a.session.Do(func(ow *owned) { ow.count(a.owner, 1) })
}

func (k read) answered(a *acquisition) { confirmRelease(a.session, a.owner) }

// confirmRelease notes that an unconfirmed release has been executed. It still counts if it may
// have removed the present read hold, or one that is being acquired or released.
func confirmRelease(s *lockSession, owner string) {
	if !s.TryLock() {
		return
	}
	defer s.Unlock()
	s.Do(func(ow *owned) {
		if ow.held[sharedMode] == nil {
			ow.count(owner, -1)
		}
	})
}

// gone returns errUnconfirmed if an unconfirmed release may have removed the hold.
func (k read) gone(a *acquisition) error {
	reason := watchdog.ErrGone
	a.session.Do(func(ow *owned) {
		if ow.unconfirmed[a.owner] > 0 {
			reason = errUnconfirmed
		}
	})
	return reason
}

func (k read) released(*acquisition, lua.Released) {}

// released ends the read hold of the owner if Redis has nothing left of it.
func (k write) released(a *acquisition, r lua.Released) {
	if !r.Held || r.Reading {
		return
	}
	if reading := held(a.session, sharedMode); reading != nil {
		reading.lose(watchdog.ErrGone)
	}
}

func (k write) unanswered(*acquisition) {}

func (k write) answered(*acquisition) {}

func (k write) gone(*acquisition) error { return watchdog.ErrGone }

// began checks the read hold of the owner, which may have stopped writing meanwhile.
func (k readWrite) began(a *acquisition) { endUntrusted(a.session) }

func (k readWrite) ended(a *acquisition) { endUntrusted(a.session) }

// endUntrusted ends a read hold that an unconfirmed release may remove, once no write hold of its
// owner keeps others out.
func endUntrusted(s *lockSession) {
	var a *acquisition
	s.Do(func(ow *owned) {
		if reading := ow.held[sharedMode]; reading != nil && ow.held[exclusiveMode] == nil &&
			ow.unconfirmed[reading.owner] > 0 {
			a = reading
		}
	})
	if a != nil {
		a.lose(errUnconfirmed)
	}
}

func (k read) cleanUp(c *Client, batch []cleanup) bool {
	return c.cleanUpShared(batch[0], k.script().ReleaseRead)
}

func (k write) cleanUp(c *Client, batch []cleanup) bool {
	return c.cleanUpShared(batch[0], k.script().ReleaseWrite)
}

func (k read) kept(cleanup) bool { return false }

// kept reports whether the owner still reads: Redis then keeps its writer field.
func (k write) kept(l cleanup) bool {
	if l.session == nil {
		return false
	}
	reading := held(l.session, sharedMode)
	return reading != nil && reading.owner == l.request.owner
}

// cleanUpShared removes what an owner has in one mode. Both modes have one name in Redis, so the
// session tells whether the owner holds the lock now.
func (c *Client) cleanUpShared(
	l cleanup, release func(context.Context, rueidis.CoreClient, string, int) (lua.Released, error),
) bool {
	s, m, owner, untaken := l.session, l.lock.kind.mode(), l.request.owner, false
	if s != nil {
		if untaken = countUntaken(s, owner, m); !untaken {
			if !s.TryLock() {
				return false
			}
			defer s.Unlock()
			if held(s, m) != nil { // its own release removes both, under the same name
				return true
			}
		}
	}
	released, err := release(context.Background(), c.redis, owner, 0)
	if s != nil && m == sharedMode {
		switch unknown := err != nil && lua.ClassOf(err) == lua.Unknown; {
		case untaken && !unknown:
			confirmRelease(s, owner)
		case unknown && !untaken:
			s.Do(func(ow *owned) { ow.count(owner, 1) })
		}
	}
	return c.cleaned(l.lock, released, err)
}

// countUntaken reports whether a session holds nothing under the owner's name. If so, it counts the
// release of a read lock that its caller is about to send as unconfirmed. The release of a write
// hold never is: an owner that reads cannot write again under its name.
func countUntaken(s *lockSession, owner string, m mode) bool {
	untaken := true
	s.Do(func(ow *owned) {
		for _, a := range ow.held {
			if a != nil && a.owner == owner {
				untaken = false
				return
			}
		}
		if m == sharedMode {
			ow.count(owner, 1)
		}
	})
	return untaken
}
