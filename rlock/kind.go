package rlock

import (
	"context"
	"time"

	"github.com/redis/rueidis"

	"holdfast/internal/owner"
	"holdfast/internal/session"
	"holdfast/internal/waitqueue"
	"holdfast/internal/wire"
	"holdfast/lua"
	"holdfast/pubsub"
)

// kind has the commands of a kind of lock. A value belongs to one lock, and has no state. Renewals
// and nested locks depend on the mode only. To add a kind, follow the list in docs/architecture.md
// under "A new kind of lock".
//
// Each command may be retried. The end of a context ends only the waiting for a reply.
type kind interface {
	// acquire tries once to acquire the lock for an owner that does not hold it.
	acquire(ctx context.Context, redis rueidis.CoreClient, r request) (reply, error)
	// release leaves count levels. With 0 it gives the lock to a waiter, or announces the release.
	release(ctx context.Context, owner string, count int, o offer) (lua.Released, error)
	// forceUnlock frees the lock, whichever owner holds it.
	forceUnlock(ctx context.Context) (lua.Released, error)
	// cleanUp removes a batch of cleanups from Redis.
	cleanUp(batch []cleanup) (lua.Released, error)
	// waiting returns how an owner waits. beside says that it holds the lock in the other mode.
	waiting(owner string, beside bool) *waiting
}

// traits has the properties of a kind of lock.
type traits struct {
	family    string // names the kind in session keys: locks of one family and name share a session
	mode      mode   // how the lock is held
	handsOver bool   // a release may give the lock to the next waiter in this process
	batched   bool   // one script can acquire it with others, and it can be part of a RedLock
	sharesKey bool   // a read-write lock: the other mode may keep the key beyond this one's lease
	queueKey  string // of the queue in Redis, which other locks may share; "" if it has none
	beside    error  // why an owner of the other mode cannot acquire this one; nil if it can
	reentry   error  // why an owner cannot acquire the lock once more; nil if it can

	cleanups int // how many of them one command removes; 0 counts as 1
	inspect  func(ctx context.Context, c rueidis.CoreClient, lock string) (lua.State, error)
}

// kindName returns what the kind is called in messages.
func (l *Lock) kindName() string {
	switch {
	case l.sharesKey && l.mode == sharedMode:
		return "read"
	case l.sharesKey:
		return "write"
	}
	return l.family
}

// held names the lock and an owner, for a renewal and a nested lock.
func (l *Lock) held(owner string) lua.Held {
	if l.sharesKey && l.mode == exclusiveMode {
		owner = wire.WriteField(owner)
	}
	return lua.Held{Lock: l.name, Owner: owner, Read: l.mode == sharedMode}
}

// mode tells how a lock is held: by one owner, or by any number of them.
type mode int

const (
	exclusiveMode mode = iota
	sharedMode         // the read mode of a read-write lock
	modes
)

// request carries what a caller asks of a lock.
type request struct {
	owner  string
	lease  time.Duration
	waits  bool          // it is sent again when it is refused
	waited bool          // it was refused before
	beside bool          // the owner holds the lock in the other mode
	window time.Duration // how long a fair lock's queue entry is kept without asking
	until  time.Time     // when the caller stops waiting; zero without a limit

	registers  bool             // it registers the owner for a grant
	grantLease time.Duration    // the lease of a grant
	streak     waitqueue.Streak // of a grant that the owner gives up
}

// reply is the reply to a request.
type reply struct {
	holder *lua.Holder // the holder; nil if the lock was acquired
	fence  int64       // the fencing token, if the lock is fenced
	ticket waitqueue.Ticket
	// taken and short are set with SyncReplicas only: it was acquired, whatever failed later; it was
	// undone, because too few replicas have acknowledged it.
	taken bool
	short *ReplicationError
}

// waiting describes how callers wait for a lock.
type waiting struct {
	queue     queueName
	topic     pubsub.Topic
	ownQueue  bool // each caller asks Redis itself, and has a queue of its own
	queued    bool // a refused request that waits leaves something in Redis
	registers bool // waiters may be granted the lock
}

// queueName names a local queue: which waiters, for which lock. Kinds do not share queues.
type queueName struct{ waiters, lock string }

// topic returns what waiters of the queue listen to. By Redisson's rule "order" and "{order}" share
// a channel, so the queue has to be named.
func (qn queueName) topic(channel string) pubsub.Topic {
	return pubsub.Topic{Channel: channel, Name: qn.waiters + " " + qn.lock}
}

// waiting returns how callers wait in the queue.
func (qn queueName) waiting(channel string) *waiting {
	return &waiting{queue: qn, topic: qn.topic(channel)}
}

// sessionKey identifies the session of an owner with a lock.
type sessionKey struct {
	family, lock string
	token        owner.Token
}

type (
	lockSession  = session.Session[sessionKey, owned]
	lockSessions = session.Sessions[sessionKey, owned]
	lockQueues   = waitqueue.Queues[queueName, known]
	lockQueue    = waitqueue.Queue[queueName, known]
	waiter       = waitqueue.Waiter[queueName, known]
	offer        = waitqueue.Offer[queueName, known]
)

// owned is the state of a session: what its owner holds.
type owned struct {
	held [modes]*acquisition // nil while the owner does not hold that mode
	// unconfirmed counts, by the owner's name in Redis, releases of the read lock that may still be
	// under way without a caller; see readwrite.go. nil until there is one.
	unconfirmed map[string]int
}

// held returns the acquisition of a session in a mode; nil if there is none.
func held(s *lockSession, m mode) (a *acquisition) {
	s.Do(func(ow *owned) { a = ow.held[m] })
	return a
}

// holder returns the owner's name in Redis; "" if it holds nothing. It holds both modes of a
// read-write lock under one name, because a writer could not read otherwise.
func (ow *owned) holder() (name string) {
	for _, a := range ow.held {
		if a != nil {
			name = a.owner
		}
	}
	return name
}
