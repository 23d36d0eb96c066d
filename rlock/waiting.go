package rlock

import (
	"time"

	"holdfast/internal/wait"
	"holdfast/internal/waitqueue"
	"holdfast/lua"
	"holdfast/pubsub"
)

// shortestWait is the least time that an attempt gives a reply. With less, nearly every outcome
// would be unknown.
const shortestWait = 10 * time.Millisecond

// wait acquires the lock, and queues for it if it is not free.
func (at *attempt) wait() (*Hold, error) {
	how := at.lock.kind.waiting(at.request)
	if how.ownQueue && !at.client.backlog.await(at.lock.name, &at.budget) {
		at.failure = errUnsent
		return nil, at.ended()
	}
	first := at.client.queues.Try(how.queue)
	var w *waiter
	if !first || how.registers && at.client.transport.Listens() {
		w = at.join(how, !first)
	}
	if w == nil {
		hold, left, err := at.try()
		switch {
		case hold == nil && err == nil && !left:
			w = at.join(how, true)
		case err != nil || left && at.trace == late:
			at.cleanUp()
		}
		if w == nil {
			at.client.queues.EndTry(how.queue)
			if left {
				err = at.ended()
			}
			return hold, err
		}
		if w.First {
			at.learn(w.Queue())
		}
	}
	if first {
		at.client.queues.EndTry(how.queue)
	}
	// An older listener does not report what was missed since the first try.
	resumed := false
	w.Queue().Do(func(kn *known) { resumed = kn.resumed })
	return at.queue(how, w, w.First && (at.sent.IsZero() || resumed))
}

// join adds the attempt to the end of its queue. Without always it returns nil if nobody in this
// process has waited for the lock just now.
func (at *attempt) join(how waiting, always bool) *waiter {
	return at.client.queues.Join(how.queue,
		waitqueue.Candidate{Owner: at.request.owner, Lease: at.request.grantLease},
		func() (k known, ok bool) {
			if how.registers {
				k.listener = at.client.transport.Resume(how.topic)
			}
			k.resumed = k.listener != nil
			return k, always || k.resumed
		})
}

// learn shares the reply to the last try with the queue.
func (at *attempt) learn(q *lockQueue) {
	if at.failure == nil {
		q.Answered(true)
	}
	q.Do(func(kn *known) {
		if kn.failure = at.failure; at.failure == nil {
			kn.answered(at.holder)
		}
	})
}

// acquired tells the queue that this attempt has the lock for lease.
func (at *attempt) acquired(q *lockQueue, lease time.Duration) {
	q.Answered(false)
	q.Do(func(kn *known) { kn.answered(lua.Holder{Owner: at.request.owner, TTL: lease}) })
}

// queue waits until this attempt is the head of its queue, and then asks whenever there is a reason
// to; or until it is granted the lock.
func (at *attempt) queue(how waiting, w *waiter, ask bool) (*Hold, error) {
	var (
		delay wait.Backoff
		head  = w.First
		q     = w.Queue()
	)
	for {
		var grant waitqueue.Grant
		reason := waitqueue.Retry
		if ask {
			hold, left, granted, err := at.askFrom(how, w, &grant)
			switch {
			case hold != nil:
				return hold, nil
			case left || err != nil:
				q.Do(func(kn *known) { at.holder = kn.lastHolder() })
				return nil, at.leaveQueue(w, err)
			}
			at.learn(q)
			if at.failure == nil {
				delay = wait.Backoff{}
			}
			if ask = false; granted {
				reason = waitqueue.HasGrant
			}
		}
		if reason != waitqueue.HasGrant {
			if head {
				reason, grant = at.park(how, w, &delay)
			} else {
				reason, grant = w.Wait(&at.budget)
				if reason == waitqueue.Retry && at.tooLate(q) {
					reason = waitqueue.BecameHead
				}
			}
		}
		switch reason {
		case waitqueue.Ended:
			q.Do(func(kn *known) {
				if at.holder = kn.lastHolder(); at.sent.IsZero() {
					// Only the head has asked. Its error applies to all, and does not mean that
					// another owner has the lock.
					at.failure = kn.lastError()
				}
			})
			return nil, at.leaveQueue(w, nil)
		case waitqueue.HasGrant:
			hold, err := at.accept(grant)
			if hold != nil || err != nil {
				at.acquired(q, at.request.grantLease)
				return hold, at.dequeue(w, hold, err)
			}
			ask = true // the lock may be ours already, which the reply will tell
		case waitqueue.Retry:
			ask = true
		case waitqueue.Paused, waitqueue.BecameHead:
		}
		head = true
	}
}

// askFrom sends a request from the head of a queue.
func (at *attempt) askFrom(
	how waiting, w *waiter, g *waitqueue.Grant,
) (hold *Hold, left, granted bool, err error) {
	q, hears := w.Queue(), false
	q.Do(func(kn *known) { hears = kn.listener != nil && kn.listener.Paired() })
	at.request.waited = w.Waited()
	at.request.registers = w.Ask(how.registers && at.client.transport.GivesAway(), hears)
	at.streak = waitqueue.Streak{HereSince: time.Now()} // if the lock is acquired by asking
	hold, left, err = at.try()
	*g, granted = w.Answer(at.ticket, at.sent)
	if hold != nil {
		at.acquired(q, at.request.lease)
		_ = at.dequeue(w, hold, nil)
	}
	return hold, left, granted, err
}

// dequeue removes an attempt that has the lock, or failed with err, from its queue. After a reader
// the next one asks at once, because it can read as well.
func (at *attempt) dequeue(w *waiter, hold *Hold, err error) error {
	if hold == nil {
		return at.leaveQueue(w, err)
	}
	w.Acquire()
	_, over := w.Leave(at.lock.mode == sharedMode)
	closeListener(over)
	return nil
}

// leaveQueue removes an attempt without the lock from its queue, cleans up what may remain in
// Redis, and returns err, or why the attempt ended. The next waiter asks at once: a wake-up may
// have arrived for this attempt while it left.
func (at *attempt) leaveQueue(w *waiter, err error) error {
	remains, over := w.Leave(true)
	closeListener(over)
	if remains != waitqueue.Nothing {
		at.request.registers = true
		at.trace = max(at.trace, something)
	}
	if remains == waitqueue.Late {
		at.trace = late
	}
	at.cleanUp()
	if err != nil {
		return err
	}
	return at.ended()
}

// closeListener closes the listener of a queue that has ended.
func closeListener(over *known) {
	if over != nil && over.listener != nil {
		over.listener.Close()
	}
}

// park blocks at the head of a queue until asking is useful.
func (at *attempt) park(
	how waiting, w *waiter, delay *wait.Backoff,
) (waitqueue.Reason, waitqueue.Grant) {
	var (
		q     = w.Queue()
		pause time.Duration
		sub   *pubsub.Subscription
		wake  <-chan struct{}
	)
	q.Do(func(kn *known) {
		if kn.listener == nil {
			kn.listener = at.client.transport.Subscribe(how.topic) // nil when the client is closed
		}
		sub, pause = kn.listener, kn.pause()
	})
	if at.failure != nil {
		pause = delay.Next()
	}
	if sub != nil {
		wake = sub.C()
	}
	reason, grant := w.Park(&at.budget, pause, wake)
	switch reason {
	case waitqueue.BecameHead:
		return waitqueue.Retry, grant // its state has changed
	case waitqueue.Paused:
	default:
		return reason, grant
	}
	if sub != nil {
		if left := sub.Advice(); left > 0 {
			q.Do(func(kn *known) { kn.advised(time.Duration(left) * time.Millisecond) })
			return waitqueue.BecameHead, grant
		}
	}
	return waitqueue.Retry, grant
}

// tooLate reports whether an attempt that became head has too little time left for a reply: the
// outcome of a request would be unknown. It then waits for a message only, and the next head asks
// instead.
func (at *attempt) tooLate(q *lockQueue) (late bool) {
	until := at.budget.Until
	if !at.sent.IsZero() || until.IsZero() || time.Until(until) >= shortestWait {
		return false
	}
	q.Do(func(kn *known) { late = kn.lastError() == nil })
	return late
}
