package rlock

import (
	"errors"
	"time"

	"holdfast/internal/transport"
	"holdfast/internal/wait"
	"holdfast/lua"
	"holdfast/pubsub"
)

// longestPause is how long a waiter sleeps at most before it asks by itself. It bounds the harm of
// a wake-up that never comes: an ACL that forbids the channel, a message lost with a failover.
const longestPause = lua.MaxNap

// known is what the head of a queue has learned. It stays with the queue, so a new head need not
// ask again. The queue guards it.
type known struct {
	listener *pubsub.Subscription // nil until a head had to wait
	resumed  bool                 // the listener was there before the queue
	holder   lua.Holder           // who has the lock, by the last answer
	freeAt   time.Time            // when it should be free, by the last answer; zero before the first
	askAt    time.Time            // when the head should ask by itself, by the last answer
	overdue  *wait.Backoff        // between requests while a lease that is over is still in the way
	failure  error                // why the last request got no answer; nil if it did
}

// answered notes what Redis, or an acquisition of our own, says about the lock.
func (kn *known) answered(h lua.Holder) {
	now := time.Now()
	kn.holder, kn.failure = h, nil
	kn.freeAt = now.Add(h.TTL)
	if h.TTL == NoExpiry {
		kn.freeAt = now.Add(longestPause)
	}
	kn.askAt = kn.freeAt
	switch {
	case h.TTL != 0:
		kn.overdue = nil
	case kn.overdue == nil:
		kn.overdue = &wait.Backoff{} // it is over within the millisecond
	default:
		// A replica before Redis 7 that has lost its master shows its scripts what has expired,
		// with nothing left, for ever.
		kn.askAt = now.Add(kn.overdue.Next())
	}
	if h.Nap > 0 {
		kn.askAt = now.Add(h.Nap)
	}
}

// advised notes that a lease ends after left, which began by a hand-over that only its owner was
// told of.
func (kn *known) advised(left time.Duration) {
	if over := time.Now().Add(left); over.Before(kn.askAt) {
		kn.askAt = over
	}
}

// pause returns how long the head sleeps if nothing wakes it: until it is worth asking, at most
// longestPause, and never 0.
func (kn *known) pause() time.Duration {
	return min(max(time.Until(kn.askAt), time.Millisecond), longestPause)
}

// lastHolder returns who has the lock, and for how long still, by the last answer.
func (kn *known) lastHolder() lua.Holder {
	h := kn.holder
	if h.TTL != NoExpiry {
		h.TTL = max(0, time.Until(kn.freeAt))
	}
	return h
}

// lastError returns why nobody in the queue knows who has the lock; nil if Redis answers. It is
// told to callers that have sent nothing, so what may have become of the head's commands is left
// out.
func (kn *known) lastError() error {
	failure := kn.failure
	if failure == nil && kn.freeAt.IsZero() {
		failure = transport.ErrNoAnswer
	}
	var refusal *ServerError
	if !errors.As(failure, &refusal) {
		return nil // an answer that came too late to be used is one
	}
	if refusal.Class == lua.Unknown {
		unsent := *refusal
		unsent.Class = lua.Temporary
		return &unsent
	}
	return failure
}
