package rlock

import (
	"errors"
	"time"

	"holdfast/internal/rediserr"
	"holdfast/internal/transport"
	"holdfast/internal/wait"
	"holdfast/lua"
	"holdfast/pubsub"
)

// longestPause limits how long a waiter sleeps before it asks by itself. It bounds the delay of a
// wake-up that never arrives: an ACL forbids the channel, or a failover loses a message.
const longestPause = lua.MaxNap

// shortestPatience is the least time without a reply after which a server counts as silent. Twice
// the time that the last reply took is the other limit.
const shortestPatience = 100 * time.Millisecond

// known keeps what heads of a queue have learned; the next need not ask again. The queue guards it.
type known struct {
	listener *pubsub.Subscription // nil until a head had to wait
	holder   lua.Holder           // the holder by the last reply
	freeAt   time.Time            // when the lock should be free; zero before the first reply
	askAt    time.Time            // when the head should ask by itself
	overdue  *wait.Backoff        // between requests while an expired lease still blocks
	failure  error                // why the last request got no reply; nil if it did
	asked    time.Time            // since when requests have had no reply; zero if none waits for one
	patience time.Duration        // for the next reply; 0 without a reply to measure

	stranger string      // the holder that lookUp is about
	lookUp   *time.Timer // looks up who that is; nil before the first one
	lookUpAt time.Time
}

// close ends what goes on in the background for a queue that is over.
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
		// A replica before Redis 7 without its master shows scripts expired keys for ever.
		kn.askAt = now.Add(kn.overdue.Next())
	}
	if h.Nap > 0 {
		kn.askAt = now.Add(h.Nap)
	}
}

// asks records that a head sends a request.
func (kn *known) asks() {
	if kn.asked.IsZero() {
		kn.asked = time.Now()
	}
}

// silent reports whether the server has left requests without a reply for so long that the last
// reply does not say who holds the lock now. A wait that ends a moment after a request does not
// show that the server hangs.
func (kn *known) silent() bool {
	return !kn.asked.IsZero() && time.Since(kn.asked) > max(kn.patience, shortestPatience)
}

// pause returns how long the head sleeps unless it is woken: until asking is useful, never 0.
func (kn *known) pause() time.Duration {
	return min(max(time.Until(kn.askAt), time.Millisecond), longestPause)
}

// lastHolder returns the holder by the last reply, with what is left of its lease.
func (kn *known) lastHolder() lua.Holder {
	h := kn.holder
	if h.TTL != NoExpiry {
		h.TTL = max(0, time.Until(kn.freeAt))
	}
	return h
}

// lastError returns why the queue does not know the holder; nil if Redis replies. It goes to
// callers that have sent nothing, so what may have become of the head's commands is left out.
func (kn *known) lastError() error {
	failure := kn.failure
	if failure == nil && (kn.freeAt.IsZero() || kn.silent()) {
		failure = transport.ErrNoReply
	}
	var refusal *ServerError
	if !errors.As(failure, &refusal) {
		return nil // a reply too late to be used still counts as one
	}
	if refusal.Class == rediserr.ClassUnknown {
		return unsent(*refusal)
	}
	return failure
}

// unsent returns the error of a caller that has sent nothing: its outcome is known.
func unsent(e ServerError) error {
	e.Class = rediserr.ClassTemporary
	return &e
}
