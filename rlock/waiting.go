package rlock

import (
	"time"

	"holdfast/internal/transport"
	"holdfast/internal/wait"
	"holdfast/internal/waitqueue"
	"holdfast/pubsub"
)

// shortestWait is the least time for a reply. With less, nearly every outcome would be unknown.
const shortestWait = 10 * time.Millisecond

// wait acquires the lock. If it is not free, a caller that waits queues for it. Foreign code, which
// is a hook around rueidis or a tracer, may end it.
func (at *attempt) wait() (hold *Hold, err error) {
	returned := false
	defer func() {
		if !returned {
			at.abandon()
		}
	}()
	hold, err = at.tryAndQueue()
	returned = true
	return hold, err
}

func (at *attempt) tryAndQueue() (*Hold, error) {
	if !at.request.waits {
		return at.finish(at.try())
	}
	c, how := at.client, at.lock.kind.waiting(at.request.owner, at.request.beside)
	if how.ownQueue && !c.backlog.waitForRoom(at.lock.name, &at.budget) {
		at.failure = unsent(*transport.ErrNoReply)
		return nil, at.ended()
	}
	slot, resumed := c.queues.Try(how.queue), false
	at.slot = slot
	if slot == nil {
		at.call.WaitStart() // before it is in the queue, where a tracer could delay others
	}
	var w *waiter
	if slot == nil || how.registers && c.transport.Listens() {
		w, resumed = at.join(how, slot == nil)
	}
	if w == nil {
		hold, err := at.try()
		if hold != nil || err != nil || at.left {
			defer at.endTry()
			return at.finish(hold, err)
		}
		at.call.WaitStart()
		w, resumed = at.join(how, true)
		if w.JoinedAsHead {
			at.learn(w.Queue(), true)
		}
	}
	at.endTry()
	if err := at.block(w.Queue()); err != nil {
		return at.leave(w, nil, err)
	}
	defer at.unblock()
	at.client.introduction.used()
	return at.queue(how, w, w.JoinedAsHead && (at.sent.IsZero() || resumed))
}

// join adds the attempt to the end of its queue. Without always it returns nil if nobody in this
// process has waited for the lock just now. resumed says that the queue is new and has an older
// listener, which does not report what was missed since the first try.
func (at *attempt) join(how *waiting, always bool) (w *waiter, resumed bool) {
	at.waiter = at.client.queues.Join(how.queue, at.request.owner, at.request.grantLease,
		func() (k known, ok bool) {
			if how.registers {
				k.listener = at.client.transport.Resume(how.topic)
			}
			resumed = k.listener != nil
			return k, always || resumed
		})
	return at.waiter, resumed
}

// endTry ends a try without a queue, if there is one.
func (at *attempt) endTry() {
	if at.slot != nil {
		at.slot.EndTry()
		at.slot = nil
	}
}

// learn shares the last try with the queue: its failure, or whether another owner has the lock.
func (at *attempt) learn(q *lockQueue, refused bool) {
	if at.failure == nil {
		q.Answered(refused)
	}
	q.Do(func(kn *known) {
		kn.asked = time.Time{}
		kn.failure = at.failure
		if at.failure == nil {
			kn.patience = at.patience
			kn.update(at.holder)
			kn.lookUpLater(&at.client.directory)
		}
	})
	if refused && at.failure == nil {
		at.noticeOtherKind()
	}
}

// queue waits for the lock in its local queue. As the head it asks whenever there is a reason to.
func (at *attempt) queue(how *waiting, w *waiter, ask bool) (*Hold, error) {
	var grant waitqueue.Grant
	q, head, reason := w.Queue(), w.JoinedAsHead, waitqueue.Paused
	if head {
		at.call.Heads()
	}
	if ask {
		reason = waitqueue.Retry
	}
	for {
		if reason == waitqueue.HasGrant {
			if hold, err := at.accept(grant); hold != nil || err != nil {
				return at.leave(w, hold, err)
			}
			reason = waitqueue.Retry // the lock may be ours already, which the reply will tell
		}
		if reason == waitqueue.Retry {
			hears := false
			q.Do(func(kn *known) {
				hears = kn.listener != nil && kn.listener.Paired()
				kn.asks()
			})
			at.request.waited = w.Waited()
			at.request.registers = w.Ask(how.registers && at.client.transport.GivesAway(), hears)
			at.fresh.streak = waitqueue.Streak{HereSince: time.Now()} // if it is acquired by asking
			hold, err := at.try()
			given, granted := w.Reply(at.ticket, at.sent)
			if hold != nil || err != nil || at.left {
				return at.leave(w, hold, err)
			}
			at.learn(q, true)
			if at.failure == nil {
				at.delay = wait.Backoff{}
				at.noticeOwnHolder()
			}
			if granted {
				reason, grant = waitqueue.HasGrant, given
				continue
			}
		}
		at.call.WaitStart()
		if head {
			reason, grant = at.park(w, how.topic)
		} else {
			reason, grant = w.Wait(&at.budget)
			if reason == waitqueue.Retry && at.tooLate(q) {
				reason = waitqueue.BecameHead
			}
			head = true
			if reason != waitqueue.Ended && reason != waitqueue.HasGrant {
				at.call.Heads()
			}
		}
		if reason == waitqueue.Ended {
			return at.leave(w, nil, nil)
		}
	}
}

// leave removes an attempt that is over from its queue, and finishes it.
func (at *attempt) leave(w *waiter, hold *Hold, err error) (*Hold, error) {
	q := w.Queue()
	if hold != nil {
		at.learn(q, false)
	} else {
		q.Do(func(kn *known) {
			at.holder = kn.lastHolder()
			switch {
			case at.sent.IsZero():
				// Only the head has asked. Its error applies to all, and does not mean that another
				// owner has the lock.
				at.failure = kn.lastError()
			case err != nil:
				kn.asked = time.Time{} // Redis has rejected the request
			case at.patience > 0 && !kn.silent():
				at.failure = kn.failure // an earlier reply has said who holds the lock, or why not
			}
		})
	}
	// Another asks at once: a wake-up may just have come, and after a reader others can read, too.
	at.waiter = nil
	remains, over := w.Leave(hold != nil, hold == nil || at.lock.mode == sharedMode)
	if over != nil {
		over.close()
	}
	if remains != waitqueue.Nothing {
		at.request.registers = true
	}
	at.remains = max(at.remains, remains)
	return at.finish(hold, err)
}

// park blocks at the head of a queue until asking is useful.
func (at *attempt) park(w *waiter, topic pubsub.Topic) (waitqueue.Reason, waitqueue.Grant) {
	q := w.Queue()
	var pause time.Duration
	var sub *pubsub.Subscription
	q.Do(func(kn *known) {
		if kn.listener == nil {
			// Subscribe returns nil until the kind of a cluster's channels is known.
			kn.listener = at.client.transport.Subscribe(topic)
		}
		sub, pause = kn.listener, kn.pause()
	})
	if at.failure != nil {
		pause = at.delay.Next()
	}
	var wake <-chan struct{}
	if sub != nil {
		wake = sub.C()
	}
	reason, grant := w.Park(&at.budget, pause, wake)
	if reason == waitqueue.Paused && sub != nil {
		if left := sub.Advice(); left > 0 {
			// A hand-over began a lease. Other waiters are told only when to ask again.
			over := time.Now().Add(time.Duration(left) * time.Millisecond)
			q.Do(func(kn *known) {
				if over.Before(kn.askAt) {
					kn.askAt = over
				}
			})
			return reason, grant
		}
	}
	if reason == waitqueue.Paused || reason == waitqueue.BecameHead { // its state has changed
		reason = waitqueue.Retry
	}
	return reason, grant
}

// tooLate reports whether an attempt that became head has too little time left for a reply. Then it
// waits for a message only, and the next head asks.
func (at *attempt) tooLate(q *lockQueue) (late bool) {
	until := at.budget.Until
	if !at.sent.IsZero() || until.IsZero() || time.Until(until) >= shortestWait {
		return false
	}
	q.Do(func(kn *known) { late = kn.lastError() == nil })
	return late
}
