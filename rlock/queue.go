package rlock

import (
	"errors"
	"strings"
	"sync"
	"time"

	"holdfast/internal/rediserr"
	"holdfast/internal/transport"
	"holdfast/internal/wait"
	"holdfast/internal/waitqueue"
	"holdfast/internal/wire"
	"holdfast/lua"
	"holdfast/pubsub"
)

// longestPause limits how long a waiter sleeps before the waiter asks by itself. It bounds the
// delay if a wake-up never arrives, for example because an ACL forbids the channel, or a failover
// loses a message.
const longestPause = lua.LongestSleep

// shortestPatience is the least time without a reply after which a server counts as silent. If the
// last reply took longer than half of this time, twice the time of that reply counts instead.
const shortestPatience = 100 * time.Millisecond

// known keeps what heads of a queue have learned, so that the next head need not ask again. The
// queue guards known.
type known struct {
	listener *pubsub.Subscription // nil until a head has to wait
	holder   lua.Holder           // the holder in the last reply
	freeAt   time.Time            // when the lock should be free; zero before the first reply
	askAt    time.Time            // when the head should ask by itself
	overdue  *wait.Backoff        // between requests while an expired lease still blocks
	failure  error                // why the last request got no reply; nil after a reply
	asked    time.Time            // since when requests have had no reply; zero without such requests
	patience time.Duration        // for the next reply; 0 without a reply to measure

	stranger string      // the holder that lookUp looks up
	lookUp   *time.Timer // looks up the identity of stranger; nil before the first look-up
	lookUpAt time.Time
}

// close ends the background work for a queue that is over.
func (kn *known) close() {
	if kn.listener != nil {
		kn.listener.Close()
	}
	if kn.lookUp != nil {
		kn.lookUp.Stop()
	}
}

// update records a reply about the lock, or an acquisition by this process.
func (kn *known) update(h lua.Holder) {
	now := time.Now()
	kn.holder, kn.failure, kn.freeAt = h, nil, now.Add(h.TTL)
	if h.TTL == NoExpiry {
		kn.freeAt = now.Add(longestPause)
	}
	kn.askAt = kn.freeAt
	switch {
	case h.TTL != 0:
		kn.overdue = nil
	case kn.overdue == nil:
		kn.overdue = &wait.Backoff{} // the lease ends within the millisecond
	default:
		// A replica before Redis 7 without its master shows expired keys to scripts forever.
		kn.askAt = now.Add(kn.overdue.Next())
	}
	if h.Sleep > 0 {
		kn.askAt = now.Add(h.Sleep)
	}
}

// asks records that a head sends a request.
func (kn *known) asks() {
	if kn.asked.IsZero() {
		kn.asked = time.Now()
	}
}

// silent reports whether the server has left requests without a reply for so long that the holder
// in the last reply may have changed. If a wait ends a moment after a request, that does not show
// that the server hangs.
func (kn *known) silent() bool {
	return !kn.asked.IsZero() && time.Since(kn.asked) > max(kn.patience, shortestPatience)
}

// pause returns how long the head sleeps unless a message wakes it. The result is the time until
// asking is useful, and never 0.
func (kn *known) pause() time.Duration {
	return min(max(time.Until(kn.askAt), time.Millisecond), longestPause)
}

// lastHolder returns the holder in the last reply, with the rest of its lease.
func (kn *known) lastHolder() lua.Holder {
	h := kn.holder
	if h.TTL != NoExpiry {
		h.TTL = max(0, time.Until(kn.freeAt))
	}
	return h
}

// lastError returns why the queue does not know the holder, or nil if Redis replies. The error goes
// to callers that have sent nothing, so it leaves out the outcome of the head's commands.
func (kn *known) lastError() error {
	failure := kn.failure
	if failure == nil && (kn.freeAt.IsZero() || kn.silent()) {
		failure = transport.ErrNoReply
	}
	var refusal *ServerError
	if !errors.As(failure, &refusal) {
		return nil // a late, unused reply also counts as a reply
	}
	if refusal.Class == rediserr.ClassUnknown {
		return unsent(*refusal)
	}
	return failure
}

// unsent returns the error of a caller that has sent nothing and therefore knows its outcome.
func unsent(e ServerError) error {
	e.Class = rediserr.ClassTemporary
	return &e
}

// longestGrant is the time for the cleanup of a grant with an unknown waiter and an unknown lease.
const longestGrant = time.Hour

// granted handles a grant message. granted ignores messages for other clients, and messages on the
// channel of another lock.
func (c *Client) granted(channel, message string) {
	g, ok := wire.ParseGrant(message)
	if !ok || !strings.HasPrefix(g.Owner, c.id+":") ||
		channel != wire.GrantChannel(g.Lock, c.id) {
		return
	}
	streak := waitqueue.Streak{Count: g.Streak.Count, Began: g.Streak.Began}
	m := waitqueue.Message{Owner: g.Owner, Ticket: waitqueue.Ticket(g.Ticket), Local: g.Local,
		Fence: g.Fence, Streak: streak}
	if c.queues.Deliver(m, func(name queueName) bool { return name.lock == g.Lock }) ||
		c.acquisition(g.Owner) != nil {
		return // the waiter has the message now, or acquired the lock by asking
	}
	// Check releasing after the acquisitions, because the client sets releasing before an acquisition
	// ends.
	if _, releases := c.releasing.Load(g.Owner); releases {
		return
	}
	lock := c.lockOf(g.Lock)
	if g.Fence != 0 {
		lock = c.fencedOf(g.Lock) // the release of a fenced lock can give the next waiter a token
	}
	c.cleaner.add(cleanup{lock: lock, request: request{owner: g.Owner, streak: streak},
		until: time.Now().Add(longestGrant)})
}

// backlog counts, for each fair lock, the requests under way whose callers have left. Redis may
// still execute these requests and add absent owners to the queue. Callers with short waits must
// not pile up such requests on a slow server, so new callers wait until few are left. A backlog is
// safe for concurrent use.
type backlog struct {
	mu     sync.Mutex
	byLock map[string]debt // guarded by mu; has only locks with such requests
}

// debt is the number of replies that a server owes to absent callers of a lock.
type debt struct {
	owed int           // briefly below 0 if a reply is noted before its caller has left
	few  chan struct{} // nil while owed is at most mostOwed; closed when owed falls to mostOwed again
}

// mostOwed limits the owed replies of a lock. mostOwed is not 0, because one lost reply would then
// block all callers.
const mostOwed = 16

// waitForRoom blocks until at most mostOwed replies are owed. waitForRoom returns false if the
// budget ends first.
func (b *backlog) waitForRoom(lock string, budget *wait.Budget) bool {
	for {
		b.mu.Lock()
		few := b.byLock[lock].few
		b.mu.Unlock()
		if few == nil || !budget.Wait(few) {
			return few == nil
		}
	}
}

// add notes that callers have left without a reply. A negative number notes late replies.
func (b *backlog) add(lock string, owed int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	d := b.byLock[lock]
	d.owed += owed
	switch many := d.owed > mostOwed; {
	case many && d.few == nil:
		d.few = make(chan struct{})
	case !many && d.few != nil:
		close(d.few)
		d.few = nil
	}
	b.byLock[lock] = d
	if d.owed == 0 {
		delete(b.byLock, lock)
	}
}
