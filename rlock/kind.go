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

// kind has the commands of a kind of lock. A kind belongs to one lock, and has no state. Renewals
// and nested calls depend on the mode only. To add a kind, follow the list in docs/architecture.md
// under "A new kind of lock".
//
// The client may retry each command. The end of a context ends only the wait for a reply.
type kind interface {
	// acquire tries once to acquire the lock for an owner that does not hold the lock.
	acquire(ctx context.Context, redis rueidis.CoreClient, r request) (reply, error)
	// release leaves count levels. With 0, release gives the lock to a waiter, or announces the
	// release.
	release(ctx context.Context, owner string, count int, o offer) (lua.Released, error)
	// forceUnlock frees the lock of any owner.
	forceUnlock(ctx context.Context) (lua.Released, error)
	// cleanUp removes a batch of cleanups from Redis.
	cleanUp(batch []cleanup) (lua.Released, error)
	// waiting returns how an owner waits. beside says that the owner holds the lock in the other mode.
	waiting(owner string, beside bool) *waiting
}

// traits has the properties of a kind of lock.
type traits struct {
	family    string // in session keys; locks with equal family and name share a session
	mode      mode   // how the lock is held
	handsOver bool   // a release may give the lock to the next waiter in this process
	// takesTurns says that a release may pass the lock on to the next waiter of this process without a
	// command.
	takesTurns bool
	batched    bool       // a script can acquire several such locks, and a RedLock can use the lock
	sharesKey  bool       // of a read-write lock; the other mode may keep the key beyond the lease
	queueKey   string     // of the queue in Redis, which other locks may share; "" without a queue
	wakes      owner.Kind // of the waiters that a release of the lock wakes
	beside     error      // why an owner of the other mode cannot acquire the lock; nil if it can
	reentry    error      // why an owner cannot acquire the lock again; nil if it can

	cleanups int // how many cleanups one command handles; 0 counts as 1
	inspect  func(ctx context.Context, c rueidis.CoreClient, lock string) (lua.State, error)
}

// kindName returns the name of the kind in messages.
func (l *Lock) kindName() string {
	switch {
	case l.sharesKey && l.mode == sharedMode:
		return "read"
	case l.sharesKey:
		return "write"
	}
	return l.family
}

// held returns the lock and an owner, for a renewal or a nested call.
func (l *Lock) held(owner string) lua.Held {
	if l.sharesKey && l.mode == exclusiveMode {
		owner = wire.WriteField(owner)
	}
	return lua.Held{Lock: l.name, Owner: owner, Read: l.mode == sharedMode}
}

// mode says whether one owner or any number of owners can hold a lock.
type mode int

const (
	exclusiveMode mode = iota
	sharedMode         // the read mode of a read-write lock
	modes
)

// request is what a caller asks of a lock. A request is refused if another owner holds the lock.
type request struct {
	owner  string
	lease  time.Duration
	waits  bool          // the caller sends the request again if it is refused
	waited bool          // the request was refused before
	beside bool          // the owner holds the lock in the other mode
	window time.Duration // how long a fair lock keeps a queue entry without a request
	until  time.Time     // when the caller stops waiting; zero without a limit

	registers  bool             // the request registers the owner for a grant
	grantLease time.Duration    // the lease of a grant
	streak     waitqueue.Streak // of a grant that the owner does not use
}

// reply is the reply to a request.
type reply struct {
	holder *lua.Holder // the holder; nil if the lock was acquired
	fence  int64       // the fencing token, if the lock is fenced
	ticket waitqueue.Ticket
	// The others are set with SyncReplicas only. taken says that the lock was acquired, even if a
	// later step failed. short says that the acquisition was undone, because too few replicas
	// acknowledged it. sent is when the command was sent, which may be long after the caller asked,
	// because the command needs a connection of its own.
	taken bool
	short *ReplicationError
	sent  time.Time
}

// waiting describes how callers wait for a lock.
type waiting struct {
	queue     queueName
	topic     pubsub.Topic
	ownQueue  bool // each caller asks Redis itself, with a separate queue
	queued    bool // a refused request of a waiter leaves something in Redis
	registers bool // a release may grant waiters the lock
}

// queueName identifies a local queue by its waiters and its lock. Kinds do not share queues.
type queueName struct{ waiters, lock string }

// topic returns the topic that waiters of the queue subscribe to. The topic has the name of the
// queue, because "order" and "{order}" share a channel by the rules of Redisson.
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

// owned is the state of a session, with the acquisitions of the owner.
type owned struct {
	held [modes]*acquisition // nil while the owner does not hold that mode
	// unconfirmed counts releases of the read lock that may still be under way without a caller, by
	// the owner's name in Redis. See readwrite.go. nil until the first such release.
	unconfirmed map[string]int
}

// held returns the acquisition of a session in a mode, or nil.
func held(s *lockSession, m mode) (a *acquisition) {
	s.Do(func(ow *owned) { a = ow.held[m] })
	return a
}

// holder returns the owner's name in Redis, or "" if the owner holds nothing. Both modes of a
// read-write lock have the same name, because a writer could not read otherwise.
func (ow *owned) holder() (name string) {
	for _, a := range ow.held {
		if a != nil {
			name = a.owner
		}
	}
	return name
}
