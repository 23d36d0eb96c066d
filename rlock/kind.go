package rlock

import (
	"context"
	"time"

	"github.com/redis/rueidis"

	"holdfast/internal/owner"
	"holdfast/internal/session"
	"holdfast/internal/transport"
	"holdfast/internal/waitqueue"
	"holdfast/lua"
)

// kind is what differs between the kinds of locks. A value belongs to one lock, and has no state of
// its own. To add a kind, write its methods in a file of its own, with a constructor: embed
// exclusive for what it has in common with a plain lock.
//
// Each command may be repeated. The end of a context ends the waiting for a reply, and nothing
// else.
type kind interface {
	// family returns the name of the kind in session keys. Locks of one family and name share a
	// session: the two modes of a read-write lock do, all others are alone.
	family() string
	// mode returns which lock of its session it is.
	mode() mode
	// beside returns why an owner that holds the other mode cannot acquire this one; nil if it can.
	beside() error

	// acquire tries once to take the lock for an owner that does not hold it.
	acquire(ctx context.Context, redis rueidis.CoreClient, r request) (reply, error)
	// reenter adds a level, so that there are count. It returns false if the owner does not hold
	// the lock.
	reenter(ctx context.Context, owner string, count int, lease time.Duration) (bool, error)
	// release leaves the owner with count levels. With 0 it gives the lock to one who waits, or
	// tells all.
	release(ctx context.Context, owner string, count int, o offer) (lua.Released, error)
	// forceUnlock frees the lock whoever holds it.
	forceUnlock(ctx context.Context) (lua.Released, error)
	// frees reports whether forceUnlock, which found the lock held or not, took the lock from an
	// owner of another kind under the same name.
	frees(other kind, held bool) bool

	// inspect reads what Redis knows.
	inspect(ctx context.Context) (lua.State, error)
	// has reports whether a hold that Redis has under the name is one of this lock.
	has(h lua.Hold) bool

	// waiting returns how a caller waits.
	waiting(r request) waiting
	// queued reports whether a refused request that waits leaves something in Redis.
	queued() bool
	// handsOver reports whether a release may give the lock to the next waiter in this process.
	handsOver() bool

	// renewal returns the command that renews leases.
	renewal() *renewal
	// lease returns what a renewal asks for, for one owner.
	lease(owner string) lua.Renewal

	// outlives reports whether Redis may keep what an acquisition holds beyond its lease.
	outlives() bool
	// began, ended and released are told of the steps of an acquisition; unanswered, that nobody
	// waits any more for the reply to its last release, which may still be under way; answered,
	// that such a reply came.
	began(a *acquisition)
	ended(a *acquisition)
	released(a *acquisition, r lua.Released)
	unanswered(a *acquisition)
	answered(a *acquisition)
	// gone returns why an acquisition was lost that Redis does not have any more.
	gone(a *acquisition) error

	// cleanUp removes what a batch of cleanups has in Redis, and returns false if it should be
	// tried again. batchSize returns how many it takes.
	cleanUp(c *Client, batch []cleanup) bool
	batchSize() int
	// kept reports whether Redis keeps what a cleanup removes although its time is over.
	kept(c cleanup) bool

	// plain returns how to take and release the lock together with others, and as part of a
	// RedLock; nil if it cannot be.
	plain() plain
}

// plain is what a plain lock can do besides.
type plain interface {
	// part returns the release of the lock as part of a batch.
	part(owner string, count int) lua.BatchRelease
}

// mode is how a lock is held: by one owner, or by any number of them.
type mode int

const (
	exclusiveMode mode = iota
	sharedMode         // the read mode of a read-write lock
	modes
)

// request is what a caller asks of a lock.
type request struct {
	owner  string
	lease  time.Duration
	waits  bool          // it is sent again when it is refused
	waited bool          // it was refused before
	beside bool          // the owner holds the lock in the other mode
	window time.Duration // for how long the place in a fair lock's queue is kept without asking
	until  time.Time     // when the caller stops waiting; zero without a limit

	registers  bool             // it registers the owner among those who are given the lock
	grantLease time.Duration    // that the owner is given with the lock
	streak     waitqueue.Streak // of the lock, if the owner was given that and does not want it
}

// reply is the answer to a request.
type reply struct {
	holder *lua.Holder // who is in the way; nil if the lock was taken
	fence  int64       // the number of the acquisition, if the lock is fenced
	ticket waitqueue.Ticket
	taken  bool // the lock was taken, whatever error came after that; with SyncReplicas only
}

// waiting is how callers wait for a lock.
type waiting struct {
	queue     queueName
	topic     transport.Topic
	ownQueue  bool // each caller asks Redis itself, and has a queue of its own
	registers bool // those who listen may also be given the lock
}

// queueName is the name of a local queue: locks of other kinds under the same name have others.
type queueName struct{ kind, lock string }

// topic returns where waiters of the queue hear of releases.
func (qn queueName) topic(channel string) transport.Topic {
	return transport.Topic{Channel: channel, Name: qn.kind + " " + qn.lock}
}

// sessionKey identifies what one owner has with one lock.
type sessionKey struct {
	family string
	lock   string
	token  owner.Token
}

type (
	lockSession  = session.Session[sessionKey, owned]
	lockSessions = session.Sessions[sessionKey, owned]
	lockQueues   = waitqueue.Queues[queueName, known]
	lockQueue    = waitqueue.Queue[queueName, known]
	waiter       = waitqueue.Waiter[queueName, known]
	offer        = waitqueue.Offer[queueName, known]
)

// owned is what an owner holds, the state of a session.
type owned struct {
	held [modes]*acquisition // nil while the owner does not hold that mode
	// unconfirmed counts, by the owner's name in Redis, releases of the read lock that may be under
	// way though nobody waits for them; see readwrite.go. nil as long as there was none.
	unconfirmed map[string]int
}

// held returns what is held in a mode of a session; nil if nothing is.
func held(s *lockSession, m mode) (a *acquisition) {
	s.Do(func(ow *owned) { a = ow.held[m] })
	return a
}

// holder returns the name in Redis of who holds anything in a session; "" if nobody does. Both
// modes of a read-write lock are held under one name, or a writer could not read.
func holder(s *lockSession) (name string) {
	s.Do(func(ow *owned) {
		for _, a := range ow.held {
			if a != nil {
				name = a.owner
			}
		}
	})
	return name
}

// keep makes an acquisition part of its session, which it uses until drop.
func keep(s *lockSession, a *acquisition) {
	s.Use()
	s.Do(func(ow *owned) { ow.held[a.lock.kind.mode()] = a })
}

// drop ends an acquisition's use of its session. Once is enough; more does no harm.
func drop(s *lockSession, a *acquisition) {
	mine := false
	s.Do(func(ow *owned) {
		if h := &ow.held[a.lock.kind.mode()]; *h == a {
			mine, *h = true, nil
		}
	})
	if mine {
		s.Close()
	}
}
