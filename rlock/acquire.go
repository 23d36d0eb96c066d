package rlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/internal/compose"
	"holdfast/internal/owner"
	"holdfast/internal/rediserr"
	"holdfast/internal/transport"
	"holdfast/internal/wait"
	"holdfast/internal/waitqueue"
	"holdfast/lua"
	"holdfast/pubsub"
	"holdfast/watchdog"
)

// This file follows a TryLock from top to bottom: the session of the owner, the first try, the
// queue, further tries, and the hold or the error.

const (
	// shortestLease is the shortest lease that leaves time to use the lock.
	shortestLease = 3 * time.Millisecond
	// shortestWait is the least time for a reply. With less time, nearly every outcome would be
	// unknown.
	shortestWait = 10 * time.Millisecond
)

// Lock acquires the lock and holds it for at most lease, or with [Watchdog] until you release it.
//
// Lock blocks until the lock is acquired, ctx ends, or the client is closed. While Redis is
// unreachable, loads its data, or fails over, Lock keeps trying, so give ctx a deadline to limit
// the wait.
//
// If the owner in ctx (see [WithOwner]) holds the lock already, Lock returns a nested hold. The
// lock then lasts for lease or for the rest of its earlier lease, whichever is longer.
//
// Lock returns
//   - [ErrNotAcquired], joined with the error of ctx, if ctx ended the wait;
//   - [ErrClosed] if the client was closed;
//   - [ErrLost] if the owner held the lock and Redis reports that the lock is gone;
//   - [ErrUpgrade] if the owner holds only the read lock and asks for the write lock, and
//     [ErrReentry] if the owner already holds this lock and it is not reentrant;
//   - [ErrDeadlock] if the call would wait for its own caller, or in a cycle with others of this
//     process;
//   - [ErrNotReplicated] if too few replicas acknowledged the lock (see Options.SyncReplicas);
//   - a *[ServerError] at once if Redis rejects the command permanently, and at the end of the wait
//     if Redis did not respond. If the lock may have been acquired, the error matches
//     [ErrOutcomeUnknown], and holdfast undoes the acquisition in the background;
//   - [ErrInvalid] for an impossible name (see [Client.NewLock]), and for a lease from 0 to below
//     3 ms.
//
// After an error, this call holds nothing.
func (l *Lock) Lock(ctx context.Context, lease Lease) (hold *Hold, err error) {
	return l.TryLock(ctx, wait.Unlimited, lease)
}

// TryLock acquires the lock like [Lock.Lock], but waits for at most wait. With [NoWait], TryLock
// makes a single attempt of at most Options.CommandTimeout. With [Forever], TryLock is the same as
// Lock. A positive wait below 10 ms counts as 10 ms, and a negative wait is [ErrInvalid].
//
// If another owner still has the lock at the end of the wait, the error is a *[HeldError], which
// matches [ErrNotAcquired] and names the holder and the rest of its lease.
func (l *Lock) TryLock(ctx context.Context, wait time.Duration, lease Lease,
) (hold *Hold, err error) {
	if c := l.client; c.tracing != nil || c.observer.Load() != nil {
		return l.reported(ctx, wait, lease, func(ctx context.Context, cl *call) (*Hold, error) {
			return l.acquire(ctx, cl, wait, lease)
		})
	}
	hold, err = l.acquire(ctx, nil, wait, lease)
	if err != nil {
		wrap(&err, l.name)
	}
	return hold, err
}

// reported acquires the lock with a function, and reports the result to the tracer and to the
// observer of the client, if the client has any.
func (l *Lock) reported(ctx context.Context, wait time.Duration, lease Lease,
	acquire func(context.Context, *call) (*Hold, error),
) (hold *Hold, err error) {
	cl := l.trace(ctx, wait, lease)
	returned := false
	defer func() {
		if !returned { // the tracer has panicked or ended the goroutine
			hold.abandon()
		}
	}()
	hold, err = acquire(cl.Context(ctx), cl)
	wrap(&err, l.name)
	cl.End(hold, err)
	l.client.observe(hold)
	returned = true
	return hold, err
}

// attempt is a call that wants a lock. Only one goroutine uses an attempt.
type attempt struct {
	client  *Client
	lock    *Lock
	call    *call // the trace of the call; nil without a tracer
	budget  wait.Budget
	alone   *waitqueue.Slot // while the attempt tries without a queue; else nil
	waiter  *waiter         // while the attempt is in a queue; else nil
	request request         // request.owner is the name of the acquisition in Redis
	renew   bool
	session *lockSession
	fresh   *acquisition // preallocated; fresh.token identifies the owner in this process

	// The results of the tries so far.
	sent        time.Time         // when the last try was sent
	ticket      waitqueue.Ticket  // of the registration in the last reply; 0 if none
	holder      lua.Holder        // in the last reply
	blocker     string            // the holder that the replies have named since blocked
	blocked     time.Time         // since when blocker holds the lock; zero once that was logged
	blockedCall *blockedCall      // noted while the call holds locks and waits; else nil
	patience    time.Duration     // for the next reply; 0 before the first
	timedOut    bool              // the budget ended before the reply to the last try
	failure     error             // why the last try got no reply; nil after a reply
	unknown     bool              // a try may have acquired the lock, without a later reply
	delay       wait.Backoff      // between tries without a reply
	remains     waitqueue.Remains // what the tries may have left in Redis, such as a queue entry
}

// acquire acquires the lock, or returns why not. acquire locks the session, so the calls of an
// owner form a queue.
func (l *Lock) acquire(ctx context.Context, cl *call, limit time.Duration, lease Lease,
) (hold *Hold, err error) {
	at := attempt{call: cl}
	if err := at.start(ctx, l, limit, lease); err != nil {
		return nil, err
	}
	defer l.client.group.Leave()
	at.fresh = new(acquisition)
	token, _ := owner.From(ctx)
	named := token != 0
	if !named {
		token = owner.New()
	}
	at.fresh.token = token
	key := sessionKey{l.family, l.name, token}
	if named {
		at.session = l.client.sessions.Open(key)
		defer at.session.Close()
	} else { // nobody else has this owner, so the session is part of the acquisition
		at.session = &at.fresh.home
		l.client.sessions.OpenNew(at.session, key)
	}
	if named && !at.session.Lock(&at.budget) {
		at.failure = errBusy
		return nil, at.ended()
	}
	trying := false
	defer func() {
		if at.alone != nil {
			at.alone.EndTry()
		}
		if trying { // foreign code, in a hook around rueidis or a tracer, has ended the call
			at.abandon()
		}
		at.session.Unlock()
	}()
	if named {
		hold, err = at.joinOwner()
		if hold != nil || err != nil {
			return hold, err
		}
	} else {
		at.request.owner = l.client.newName(l.wakes)
	}
	trying = true
	if at.request.waits {
		hold, err = at.tryAndQueue()
	} else {
		hold, err = at.try()
		if hold == nil {
			err = at.fail(err)
		}
	}
	trying = false
	return hold, err
}

// joinOwner adds a level to the owner's acquisition. If the owner does not hold the lock in this
// mode, joinOwner sets the name for the request, and returns neither a hold nor an error. If the
// owner holds the lock in the other mode, both modes share the name.
func (at *attempt) joinOwner() (*Hold, error) {
	l := at.lock
	if err := at.refuseReading(); err != nil {
		return nil, err
	}
	if a := held(at.session, l.mode); a != nil {
		hold, err := at.reenter(a)
		if !errors.Is(err, ErrReleased) || at.budget.Err() != nil {
			return hold, err
		}
		// Another goroutine of the owner has just released the lock, without locking the session.
		at.failure, at.unknown, at.delay = nil, false, wait.Backoff{}
	}
	at.session.Do(func(ow *owned) { at.request.owner = ow.holder() })
	if at.request.owner == "" {
		at.request.owner = l.client.newName(l.wakes)
		return nil, nil
	}
	at.request.beside = true
	if l.beside != nil {
		return nil, l.beside
	}
	if writer := held(at.session, exclusiveMode); writer != nil {
		writer.mu.Lock()
		writer.besides, at.fresh.besides = true, true
		writer.mu.Unlock()
	}
	return nil, nil
}

// start begins a call. start returns an error if the arguments are invalid, the context has ended,
// or the client is closed. After nil, the caller leaves the group of the client at the end.
func (at *attempt) start(ctx context.Context, l *Lock, limit time.Duration, lease Lease,
) (err error) {
	if l.invalid != nil {
		return l.invalid
	}
	if limit < 0 {
		return compose.NegativeWait(limit)
	}
	c, r := l.client, &at.request
	r.lease, err = c.wholeLease(lease)
	if err != nil {
		return err
	}
	at.client, at.lock, at.renew = c, l, lease < 0
	r.grantLease, r.waits, r.window = r.lease, limit != NoWait, c.options.FairWindow
	if at.renew {
		r.grantLease = c.grantLease
	}
	budget := limit
	switch {
	case limit == NoWait:
		budget = c.options.CommandTimeout
	case limit != wait.Unlimited:
		budget = max(limit, shortestWait)
		r.window = budget
	}
	at.budget.Begin(ctx, c.closing, budget) // before Join, because a nil context panics here
	r.until = at.budget.Until
	switch {
	case at.budget.Err() != nil:
		return at.ended()
	case !c.group.Join():
		return ErrClosed
	}
	return nil
}

// wholeLease returns the lease in whole milliseconds, as the client sends it. For [Watchdog] it
// returns Options.WatchdogLease. A lease that is too short to use is ErrInvalid.
func (c *Client) wholeLease(asked Lease) (time.Duration, error) {
	lease := time.Duration(asked)
	switch {
	case lease == 0:
		return 0, compose.ErrNoLease
	case lease < 0:
		lease = c.options.WatchdogLease
	}
	whole := lease.Truncate(time.Millisecond)
	if whole < shortestLease {
		return 0, invalid("lease must be at least 3ms (got %v); use a longer lease, "+
			"or rlock.Watchdog", lease)
	}
	return whole, nil
}

// tryAndQueue tries once, unless others of this process try or wait. If the lock is not free,
// tryAndQueue joins the queue of this process.
func (at *attempt) tryAndQueue() (*Hold, error) {
	c, how := at.client, at.lock.waiting
	if how.ownQueue || at.request.beside {
		how = at.lock.kind.waiting(at.request.owner, at.request.beside)
	}
	if how.ownQueue && !c.backlog.waitForRoom(at.lock.name, &at.budget) {
		at.failure = unsent(*transport.ErrNoReply)
		return nil, at.ended()
	}
	at.alone = c.queues.Try(how.queue)
	others, resumed := at.alone == nil, false
	if others {
		at.call.WaitStart() // before the attempt joins, because a tracer could delay the waiters behind
	}
	var w *waiter
	if others || how.registers && c.transport.Listens() {
		w, resumed = at.join(how, others)
	}
	if w == nil {
		hold, err := at.try()
		if hold != nil {
			return hold, nil
		}
		if err != nil || at.timedOut {
			return nil, at.fail(err)
		}
		at.call.WaitStart()
		w, resumed = at.join(how, true)
		if w.JoinedAsHead {
			at.learn(w.Queue(), true)
		}
	}
	if at.alone != nil {
		at.alone.EndTry()
		at.alone = nil
	}
	if err := at.block(w.Queue()); err != nil {
		return at.leave(w, nil, err)
	}
	defer at.unblock()
	at.client.introduction.send()
	return at.queue(how, w, w.JoinedAsHead && (at.sent.IsZero() || resumed))
}

// join adds the attempt to the end of its queue. Without always, join returns nil if there is
// neither a queue nor a subscription that an earlier queue has left. resumed says that a new queue
// has taken over such a subscription. The subscription does not report earlier messages, so the
// caller asks again.
func (at *attempt) join(how *waiting, always bool) (w *waiter, resumed bool) {
	at.waiter = at.client.queues.Join(how.queue, at.request.owner, at.request.grantLease,
		func() (k known, ok bool) {
			if how.registers {
				k.listener = at.client.transport.Resume(how.topic)
			}
			resumed = k.listener != nil
			return k, always || resumed
		})
	if at.waiter != nil && at.lock.takesTurns && at.renew && at.remains == waitqueue.Nothing {
		at.waiter.TakeTurns()
	}
	return at.waiter, resumed
}

// try sends one request. If try returns neither a hold nor an error, at.failure says whether Redis
// replied. The caller may then call try again, unless at.timedOut is set. With at.timedOut, the
// budget has ended. The worker that sent the request then cleans up, or the caller if at.remains
// says so.
func (at *attempt) try() (hold *Hold, err error) {
	c := at.client
	at.sent, at.ticket = time.Now(), 0
	if at.call != nil {
		at.call.asks()
	}
	got, state := reply{}, transport.NotSent
	if c.options.SyncReplicas == 0 {
		if call := c.calls.Begin(&at.budget, at.sent, at.lock.name); call != nil {
			got, state, err = transport.Send(call, at.ask)
		}
	}
	var lost error
	if err != nil && transport.Lost(err) { // the connection may have been idle and closed
		lost, state = err, transport.NotSent
		at.remains = max(at.remains, waitqueue.Something)
	}
	if state == transport.NotSent {
		got, state, err = at.sendByWorker()
	}
	if lost != nil { // Redis may have executed the request the first time
		err = transport.Resent(lost, err)
		if state == transport.NotExecuted {
			state = transport.StateOf(err)
		}
	}
	if state == transport.Abandoned {
		at.remains = waitqueue.Late
	}
	at.timedOut = state == transport.CallerLeft || state == transport.Abandoned && at.budget.Over()
	switch {
	case at.timedOut:
		at.failure = transport.NoReply(at.failure)
	case got.short != nil: // the acquisition was undone
		return nil, got.short
	case err != nil:
		at.failure = err
		if state == transport.Unconfirmed || got.taken {
			at.remains = max(at.remains, waitqueue.Something)
		}
		at.unknown = at.unknown || state > transport.NotExecuted
		if c.transport.Permanent(err) {
			return nil, at.ended()
		}
	case got.holder != nil:
		at.holder, at.ticket = *got.holder, got.ticket
		at.failure, at.unknown = nil, false
		at.patience = max(shortestPatience, 2*time.Since(at.sent))
		if at.refusedRemains() == waitqueue.Something {
			c.transport.Wrote()
		}
		if at.remains != waitqueue.Late {
			at.remains = at.refusedRemains()
		}
	default:
		sent := at.sent
		if !got.sent.IsZero() {
			sent = got.sent
		}
		deadline := watchdog.Deadline(sent, at.request.lease)
		if time.Until(deadline) > 0 {
			at.fresh.registered = at.request.registers
			return at.begin(at.request.lease, deadline, got.fence)
		}
		at.failure = fmt.Errorf(
			"acquired, but the reply came after the lease of %v; use a longer lease", at.request.lease)
		at.remains = max(at.remains, waitqueue.Something)
		at.unknown = true
	}
	return nil, nil
}

// sendByWorker sends the request from a worker. If the caller leaves, the worker cleans up.
func (at *attempt) sendByWorker() (reply, transport.State, error) {
	copied := *at // for the worker, so that at itself does not escape to the heap
	kind, ask := transport.Acquire, (*attempt).ask
	if at.client.options.SyncReplicas != 0 {
		kind, ask = transport.Apart, (*attempt).askReplicas
	}
	got, state, err := transport.SendByWorker(at.client.calls, kind, &at.budget, &copied, ask,
		(*attempt).handleLateReply)
	if state == transport.CallerLeft && at.lock.waiting.ownQueue {
		at.client.backlog.add(at.lock.name, 1)
	}
	return got, state, err
}

// ask sends the request.
func (at *attempt) ask(ctx context.Context) (reply, error) {
	return at.lock.kind.acquire(ctx, at.client.redis, at.request)
}

// queue waits for the lock in the local queue. As the head, queue asks Redis when there is a
// reason.
func (at *attempt) queue(how *waiting, w *waiter, ask bool) (*Hold, error) {
	head, reason := w.JoinedAsHead, waitqueue.Paused
	var grant waitqueue.Grant
	if head {
		at.call.Heads()
	}
	if ask {
		reason = waitqueue.Retry
	}
	for {
		switch reason {
		case waitqueue.Ended:
			return at.leave(w, nil, nil)
		case waitqueue.HasGrant:
			hold, err := at.accept(grant)
			if hold != nil || err != nil {
				return at.leave(w, hold, err)
			}
			reason = waitqueue.Retry // the owner may have the lock already, and the reply will show that
			continue
		case waitqueue.Retry:
			if turn, ok := w.Turn(); ok { // it came after the reason to ask
				reason, grant = waitqueue.HasGrant, turn
				continue
			}
			hold, err := at.tryAsHead(how, w)
			given, granted := w.Reply(at.ticket, at.sent)
			if hold != nil || err != nil || at.timedOut {
				return at.leave(w, hold, err)
			}
			at.learn(w.Queue(), true)
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
			continue
		}
		head = true
		reason, grant = w.Wait(&at.budget)
		if reason == waitqueue.Retry && at.tooLate(w.Queue()) {
			reason = waitqueue.BecameHead
		}
		if reason != waitqueue.Ended && reason != waitqueue.HasGrant {
			at.call.Heads()
		}
	}
}

// tryAsHead tries as the head of a queue, and registers the owner for a grant if possible.
func (at *attempt) tryAsHead(how *waiting, w *waiter) (*Hold, error) {
	hears := false
	w.Queue().Do(func(kn *known) {
		hears = kn.listener != nil && kn.listener.Paired()
		kn.asks()
	})
	at.request.waited = w.Waited()
	away := at.client.transport.HandOvers().OtherClients
	at.request.registers = w.Ask(how.registers && away, hears)
	at.fresh.noTurns = w.Known()
	at.fresh.streak = waitqueue.Streak{Here: 1, HereSince: time.Now()} // of an acquisition by asking
	return at.try()
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
		if left := sub.RetryAfter(); left > 0 {
			// A hand-over began a lease. Its message only tells other waiters when to ask again.
			over := time.Now().Add(time.Duration(left) * time.Millisecond)
			q.Do(func(kn *known) {
				if over.Before(kn.askAt) {
					kn.askAt = over
				}
			})
			return reason, grant
		}
	}
	if reason == waitqueue.Paused || reason == waitqueue.BecameHead { // time to ask
		reason = waitqueue.Retry
	}
	return reason, grant
}

// tooLate reports whether an attempt that became the head has too little time left for a reply. The
// attempt then waits for a message only, and the next head asks.
func (at *attempt) tooLate(q *lockQueue) (late bool) {
	until := at.budget.Until
	if !at.sent.IsZero() || until.IsZero() || time.Until(until) >= shortestWait {
		return false
	}
	q.Do(func(kn *known) { late = kn.lastError() == nil })
	return late
}

// learn shares the result of the last try with the queue. The result is a failure, or whether
// another owner has the lock.
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

// accept uses a grant. If too little of the lease is left, accept returns neither a hold nor an
// error.
func (at *attempt) accept(g waitqueue.Grant) (*Hold, error) {
	if g.Turn.Owner != "" {
		return at.takeTurn(g)
	}
	lease := at.request.grantLease
	most := lease / 10 // the caller gets nearly the whole lease
	if at.renew {
		most = lease / 2
	}
	if time.Since(g.Since) > most {
		at.remains = max(at.remains, waitqueue.Something)
		at.unknown = true
		return nil, nil
	}
	at.fresh.streak, at.fresh.noTurns = g.Streak, g.Registered
	hold, err := at.begin(lease, watchdog.Deadline(g.Since, lease), g.Fence)
	how := Granted
	if g.Local {
		how = HandedOver
	}
	at.call.given(how, lease)
	return hold, err
}

// begin returns the hold of a lock that was acquired for lease.
func (at *attempt) begin(lease time.Duration, deadline time.Time, fence int64) (*Hold, error) {
	a := at.fresh
	at.holder, at.failure = lua.Holder{Owner: at.request.owner, TTL: lease}, nil
	a.client, a.lock, a.session = at.client, at.lock, at.session
	a.owner, a.fence = at.request.owner, fence
	if at.remains == waitqueue.Late {
		late := at.request
		a.late = &late
	}
	if at.lock.atLeast > 0 {
		a.keepFor(at.lock.atLeast)
	}
	hold := a.newHold(at.budget.Ctx, &a.outermost, at.renew)
	a.enter(deadline, at.renew)
	if a.lock.sharesKey {
		a.endUntrusted()
	}
	if at.client.isClosing() {
		// Close may have missed this acquisition. Nobody would then renew it or end its context.
		a.Drop()
		at.remains = max(at.remains, waitqueue.Something)
		return nil, ErrClosed
	}
	return hold, nil
}

// leave removes a finished attempt from its queue, and returns its result.
func (at *attempt) leave(w *waiter, hold *Hold, err error) (*Hold, error) {
	q := w.Queue()
	if hold != nil {
		at.learn(q, false)
	} else {
		q.Do(func(kn *known) {
			at.holder = kn.lastHolder()
			switch {
			case at.sent.IsZero():
				// Only the head has asked Redis. The error of the head applies to all waiters, and does not
				// mean that another owner has the lock.
				at.failure = kn.lastError()
			case err != nil:
				kn.asked = time.Time{} // Redis has rejected the request
			case at.patience > 0 && !kn.silent():
				at.failure = kn.failure // an earlier reply named the holder, or the reason
			}
		})
	}
	// The next waiter asks at once if this waiter has no hold, because a wake-up may just have come.
	// The next waiter also asks at once after a reader, because others can read as well.
	at.waiter = nil
	remains, over := w.Leave(hold != nil, hold == nil || at.lock.mode == sharedMode)
	if over != nil {
		over.close()
	}
	if remains != waitqueue.Nothing {
		at.request.registers = true
	}
	if hold != nil {
		return hold, nil
	}
	at.remains = max(at.remains, remains)
	if turn := w.UnusedTurn(); turn.Owner != "" {
		at.request.owner, at.remains = turn.Owner, waitqueue.Something
	}
	return nil, at.fail(err)
}

// fail ends the tries without a hold. fail schedules a cleanup of what the tries may have left in
// Redis, and returns err, or the reason why the attempt ended.
func (at *attempt) fail(err error) error {
	if at.remains != waitqueue.Nothing {
		cu := at.cleanup(at.request, at.holder.TTL)
		cu.retry = at.remains == waitqueue.Late
		at.client.cleaner.add(cu)
	}
	if err == nil {
		err = at.ended()
	}
	return err
}

// ended returns why an attempt ended without the lock, or why Redis rejects the request for good.
func (at *attempt) ended() error {
	reason, err := at.budget.Err(), at.failure
	busy := errors.Is(err, errBusy)
	unknown := err != nil && !busy && (at.unknown || rediserr.ClassOf(err) == rediserr.ClassUnknown)
	switch {
	case at.budget.Ctx.Err() == nil && at.client.isClosing() && !unknown:
		return ErrClosed
	case err == nil, busy:
		held := at.heldError()
		held.busy, held.cause = busy, reason
		return held
	case unknown:
		err = fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	}
	return at.budget.Because(err)
}

// heldError returns the error that names the holder in the last reply.
func (at *attempt) heldError() *HeldError {
	return newHeldError(at.lock, at.holder, at.request.waits || at.client.options.Debug)
}

// The rest of the file handles callers that leave before the reply, and foreign code that ends a
// call.

// handleLateReply handles the reply to a request whose caller has left.
func (at *attempt) handleLateReply(got reply, err error) {
	if at.lock.waiting.ownQueue {
		at.client.backlog.add(at.lock.name, -1)
	}
	if got.short != nil {
		return // the acquisition was undone
	}
	heldFor := at.holder.TTL
	clean := err != nil && !got.taken && rediserr.ClassOf(err) != rediserr.ClassUnknown &&
		at.remains == waitqueue.Nothing
	if err == nil && got.holder != nil {
		heldFor, clean = got.holder.TTL, at.refusedRemains() == waitqueue.Nothing
	}
	if !clean {
		cu := at.cleanup(at.request, heldFor)
		cu.retry = transport.StateOf(err) == transport.Abandoned
		at.client.cleaner.add(cu)
	}
}

// abandon ends the tries after foreign code has ended the call, by a panic or by runtime.Goexit.
// Redis may have executed the last request.
func (at *attempt) abandon() {
	at.remains = max(at.remains, waitqueue.Something)
	if at.waiter == nil {
		_ = at.fail(nil)
		return
	}
	if state, _ := at.waiter.State(); state == waitqueue.Asking || state == waitqueue.OfferedAsking {
		at.waiter.Reply(0, at.sent)
	}
	_, _ = at.leave(at.waiter, nil, nil)
}
