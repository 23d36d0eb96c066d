package rlock

import (
	"time"

	"holdfast/internal/wait"
	"holdfast/internal/waitqueue"
	"holdfast/lua"
	"holdfast/pubsub"
)

// shortestWait gives an attempt time for an answer. With less nearly every outcome would be
// unknown.
const shortestWait = 10 * time.Millisecond

// wait gets the lock, and queues for it if it is not free.
func (a *attempt) wait() (*Hold, error) {
	w := a.lock.kind.waiting(a.request)
	if w.alone && !a.client.backlog.await(a.lock.name, &a.budget) {
		a.failure = errUnsent
		return nil, a.ended()
	}
	first := a.client.queues.Try(w.queue)
	var place *waiter
	if !first || w.registers && a.client.transport.Listens() {
		place = a.join(w, !first)
	}
	if place == nil {
		hold, left, err := a.try()
		switch {
		case hold == nil && err == nil && !left:
			place = a.join(w, true)
		case err != nil || left && a.trace == late:
			a.cleanUp()
		}
		if place == nil {
			a.client.queues.EndTry(w.queue)
			if left {
				err = a.ended()
			}
			return hold, err
		}
		if place.First {
			a.learn(place.Queue())
		}
	}
	if first {
		a.client.queues.EndTry(w.queue)
	}
	// A listener that was there before does not tell what was missed since the first try.
	resumed := false
	place.Queue().Do(func(k *known) { resumed = k.resumed })
	return a.queue(w, place, place.First && (a.sent.IsZero() || resumed))
}

// join puts the attempt at the end of its queue. Without always there is none if nobody of this
// process has waited for the lock just now.
func (a *attempt) join(w waiting, always bool) *waiter {
	return a.client.queues.Join(w.queue,
		waitqueue.Candidate{Owner: a.request.owner, Lease: a.request.grantLease},
		func() (k known, ok bool) {
			if w.registers {
				k.listener = a.client.transport.Resume(w.topic)
			}
			k.resumed = k.listener != nil
			return k, always || k.resumed
		})
}

// learn notes for all in the queue what the last try was answered.
func (a *attempt) learn(q *lockQueue) {
	if a.failure == nil {
		q.Answered(true)
	}
	q.Do(func(k *known) {
		if k.failure = a.failure; a.failure == nil {
			k.answered(a.holder)
		}
	})
}

// acquired notes for all in the queue that this attempt has the lock for lease.
func (a *attempt) acquired(q *lockQueue, lease time.Duration) {
	q.Answered(false)
	q.Do(func(k *known) { k.answered(lua.Holder{Owner: a.request.owner, TTL: lease}) })
}

// queue waits until this attempt is at the head of its queue, and then asks whenever there is a
// reason to; or until it is granted the lock.
func (a *attempt) queue(w waiting, place *waiter, ask bool) (*Hold, error) {
	var (
		delay wait.Backoff
		head  = place.First
		q     = place.Queue()
	)
	for {
		var grant waitqueue.Grant
		reason := waitqueue.Retry
		if ask {
			hold, left, granted, err := a.askFrom(w, place, &grant)
			switch {
			case hold != nil:
				return hold, nil
			case left || err != nil:
				q.Do(func(k *known) { a.holder = k.lastHolder() })
				return nil, a.leave(place, err)
			}
			a.learn(q)
			if a.failure == nil {
				delay = wait.Backoff{}
			}
			if ask = false; granted {
				reason = waitqueue.HasGrant
			}
		}
		if reason != waitqueue.HasGrant {
			if head {
				reason, grant = a.park(w, place, &delay)
			} else if reason, grant = place.Wait(&a.budget); reason == waitqueue.Retry && a.tooLate(q) {
				reason = waitqueue.BecameHead
			}
		}
		switch reason {
		case waitqueue.Ended:
			q.Do(func(k *known) {
				if a.holder = k.lastHolder(); a.sent.IsZero() {
					// Nobody but the head has asked. Its error is everybody's, and no reason to
					// believe that somebody has the lock.
					a.failure = k.lastError()
				}
			})
			return nil, a.leave(place, nil)
		case waitqueue.HasGrant:
			hold, err := a.accept(grant)
			if hold != nil || err != nil {
				a.acquired(q, a.request.grantLease)
				return hold, a.depart(place, hold, err)
			}
			ask = true // the lock may be ours, and Redis says so if it is
		case waitqueue.Retry:
			ask = true
		case waitqueue.Paused, waitqueue.BecameHead:
		}
		head = true
	}
}

// askFrom sends a request from the head of a queue.
func (a *attempt) askFrom(
	w waiting,
	place *waiter,
	g *waitqueue.Grant,
) (hold *Hold, left, granted bool, err error) {
	q, hears := place.Queue(), false
	q.Do(func(k *known) { hears = k.listener != nil && k.listener.Paired() })
	a.request.waited = place.Waited()
	a.request.registers = place.Ask(w.registers && a.client.transport.GivesAway(), hears)
	a.streak = waitqueue.Streak{HereSince: time.Now()} // if it is had by asking
	hold, left, err = a.try()
	*g, granted = place.Answer(a.ticket, a.sent)
	if hold != nil {
		a.acquired(q, a.request.lease)
		_ = a.depart(place, hold, nil)
	}
	return hold, left, granted, err
}

// depart takes an attempt that has the lock, or an error instead, out of its queue. What one reader
// got by asking the next one gets.
func (a *attempt) depart(place *waiter, hold *Hold, err error) error {
	if hold == nil {
		return a.leave(place, err)
	}
	place.Acquire()
	_, over := place.Leave(a.lock.kind.mode() == shared)
	closeListener(over)
	return nil
}

// leave takes an attempt without the lock out of its queue, has what may remain in Redis cleaned
// up, and returns err, or why the attempt ended. The next in the queue asks at once: a wake-up may
// have come for this attempt while it left.
func (a *attempt) leave(place *waiter, err error) error {
	remains, over := place.Leave(true)
	closeListener(over)
	if remains != waitqueue.Nothing {
		a.request.registers = true
		a.trace = max(a.trace, something)
	}
	if remains == waitqueue.Late {
		a.trace = late
	}
	a.cleanUp()
	if err != nil {
		return err
	}
	return a.ended()
}

// closeListener ends what a queue that is over listens to.
func closeListener(over *known) {
	if over != nil && over.listener != nil {
		over.listener.Close()
	}
}

// park waits at the head of a queue until it is worth asking.
func (a *attempt) park(
	w waiting,
	place *waiter,
	delay *wait.Backoff,
) (waitqueue.Reason, waitqueue.Grant) {
	var (
		q     = place.Queue()
		pause time.Duration
		sub   *pubsub.Subscription
		wake  <-chan struct{}
	)
	q.Do(func(k *known) {
		if k.listener == nil {
			k.listener = a.client.transport.Subscribe(w.topic) // nil when the client is closed
		}
		sub, pause = k.listener, k.pause()
	})
	if a.failure != nil {
		pause = delay.Next()
	}
	if sub != nil {
		wake = sub.C()
	}
	reason, grant := place.Park(&a.budget, pause, wake)
	switch reason {
	case waitqueue.BecameHead:
		return waitqueue.Retry, grant // something has happened to it
	case waitqueue.Paused:
	default:
		return reason, grant
	}
	if sub != nil {
		if left := sub.Advice(); left > 0 {
			q.Do(func(k *known) { k.advised(time.Duration(left) * time.Millisecond) })
			return waitqueue.BecameHead, grant
		}
	}
	return waitqueue.Retry, grant
}

// tooLate reports whether an attempt that became head has too little time left for an answer. It
// then waits for a message only: the outcome of a request would be unknown. The next head asks
// instead.
func (a *attempt) tooLate(q *lockQueue) (late bool) {
	until := a.budget.Until
	if !a.sent.IsZero() || until.IsZero() || time.Until(until) >= shortestWait {
		return false
	}
	q.Do(func(k *known) { late = k.lastError() == nil })
	return late
}
