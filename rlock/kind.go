package rlock

import (
	"context"
	"time"

	"github.com/redis/rueidis"

	"holdfast/internal/owner"
	"holdfast/lua"
)

// kind is what differs between the kinds of locks: the commands of each step. A kind belongs to one lock, and has no state
// besides. Each command may be repeated. A context ends the waiting for an answer only.
type kind interface {
	// acquire tries once to take the lock for an owner that does not hold it.
	acquire(ctx context.Context, redis rueidis.CoreClient, b bid) (grant, error)
	// reenter adds a level, so that there are count. It returns false if the owner does not hold the lock.
	reenter(redis rueidis.CoreClient, owner string, count int, lease time.Duration) (bool, error)
	// release leaves the owner with count levels, and with 0 gives the lock to one who waits, or tells all.
	release(ctx context.Context, redis rueidis.CoreClient, owner string, count int, to heir) (lua.Released, error)
	// withdraw undoes, by one command, whatever acquire may have done with the bids.
	withdraw(redis rueidis.CoreClient, bids ...bid) (lua.Released, error)
	// batch returns how many bids withdraw takes at most; more than one only where each waiter asks for itself.
	batch() int
	// forceUnlock frees the lock whoever holds it.
	forceUnlock(redis rueidis.CoreClient) (lua.Released, error)
	// inspect reads what Redis knows.
	inspect(redis rueidis.CoreClient) (lua.State, error)
	// claim names an owner's hold for a renewal.
	claim(owner string) lua.Renewal

	// queues tells whether an attempt that waits has a place in Redis, which it must withdraw when it leaves.
	queues() bool
	// passes tells whether a release may give the lock to the next one in this process.
	passes() bool
	// call is how a waiter hears that it should try again.
	call(owner string) call
}

// bid is what an attempt offers for a lock.
type bid struct {
	owner  string
	lease  time.Duration
	waits  bool          // it tries again when it is refused
	waited bool          // it was refused before, or whoever asked for it
	window time.Duration // for how long it means to keep its place in a fair lock's queue without asking
	until  time.Time     // when it stops waiting; zero without a limit

	turns   lua.Streak    // of the lock, if the owner was given that and does not want it
	enlists bool          // it wants a place among those who are given the lock when it is released
	gift    time.Duration // the lease that it is given then
}

// heir is who is given the lock that somebody releases: the next one in the same process. Without an owner it is nobody.
type heir struct {
	owner string
	lease time.Duration
	first bool       // before those who wait in other processes
	turns lua.Streak // of the lock, whoever is given it
}

// grant is the answer to a bid.
type grant struct {
	holder *lua.Holder // who is in the way; nil if the lock was taken
	fence  int64       // the acquisition's number, if the lock is fenced
	ticket lua.Ticket  // of the place of who was refused; 0 if it has none
	taken  bool        // the lock was taken, whatever error came after that; set only when replicas are waited for
}

// call is how waiters hear of a release: those of one line through one of them.
type call struct {
	line    lineName
	channel string
	also    []string // further channels
	places  bool     // who listens there may also be given the lock
}

// lineName is what a local queue is called: those of locks of other kinds under the same name are others.
type lineName struct{ kind, lock string }

// topic tells its messages from those for others on the same channel: Redisson's rule has one for "order" and "{order}".
func (n lineName) topic() string { return n.kind + " " + n.lock }

// side is which of the locks under one name, that an owner may hold at the same time, a lock is.
type side int

const (
	exclusive side = iota // for one owner alone
	shared                // the read lock: for any number of owners
	sides
)

// place is where an owner stands with its holds. The sides of a read-write lock are one place, other locks one each, also
// those that share their name.
type place struct {
	kind  string
	lock  string
	token owner.Token
}
