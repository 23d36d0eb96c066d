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
	"holdfast/watchdog"
)

// registrationKept is how long Redis keeps a registration whose owner does not ask again, at most.
const registrationKept = 3 * lua.MaxNap

// attempt is one call that wants a lock. One goroutine uses it.
type attempt struct {
	client  *Client
	lock    *Lock
	call    *call // its trace; nil without a tracer
	budget  wait.Budget
	slot    *waitqueue.Slot // of a try without a queue, until it has ended; nil if there is none
	waiter  *waiter         // while it is in a queue; else nil
	request request         // its owner is the name of the acquisition in Redis
	renew   bool
	session *lockSession
	fresh   *acquisition // preallocated; its token identifies the owner in this process

	// The results of the tries so far.
	sent        time.Time         // when the last try was sent
	ticket      waitqueue.Ticket  // of the registration, by the last reply; 0 if none
	holder      lua.Holder        // the holder by the last reply
	blocker     string            // the holder by the reply before that one
	blocked     time.Time         // since when it has been the holder; zero once that was logged
	blockedCall *blockedCall      // noted while it holds a lock and waits for this one; else nil
	patience    time.Duration     // for the next reply; 0 before the first
	left        bool              // the budget ended before the reply to the last try
	failure     error             // why the last try got no reply; nil if it did
	unknown     bool              // a try may have got the lock, and no later reply has told
	delay       wait.Backoff      // between tries without a reply
	remains     waitqueue.Remains // what they may have left in Redis, a queue entry included
}

// start begins a call, unless its arguments are invalid, its context has ended or the client is
// closed. If it returns nil, the caller calls stop.
func (at *attempt) start(
	ctx context.Context,
	l *Lock,
	limit time.Duration,
	lease Lease,
) (err error) {
	if l.invalid != nil {
		return l.invalid
	}
	if err := compose.CheckTimes(limit, time.Duration(lease)); err != nil {
		return err
	}
	c, r := l.client, &at.request
	r.lease, err = c.wholeLease(lease)
	if err != nil {
		return err
	}
	at.client, at.lock, at.renew = c, l, lease < 0
	r.grantLease, r.waits, r.window = r.lease, limit != NoWait, c.options.FairWindow
	if at.renew {
		r.grantLease = c.options.grantLease()
	}
	budget := limit
	switch {
	case limit == NoWait:
		budget = c.options.CommandTimeout
	case limit != wait.Unlimited:
		budget = max(limit, shortestWait)
		r.window = budget
	}
	at.budget.Begin(ctx, c.closing, budget) // before Enter, because a nil context panics here
	r.until = at.budget.Until
	if !c.group.Enter() {
		return ErrClosed
	}
	if at.budget.Err() != nil {
		defer at.stop()
		return at.ended()
	}
	return nil
}

// stop ends a call.
func (at *attempt) stop() {
	at.budget.Stop()
	at.client.group.Leave()
}

// acquire acquires the lock, or returns why not. Locking the session makes an owner's calls queue.
func (l *Lock) acquire(
	ctx context.Context,
	cl *call,
	limit time.Duration,
	lease Lease,
) (*Hold, error) {
	at := attempt{call: cl}
	if err := at.start(ctx, l, limit, lease); err != nil {
		return nil, err
	}
	defer at.stop()
	c := l.client
	at.fresh = new(acquisition)
	token, named := owner.From(ctx)
	if !named {
		token = owner.New()
		at.session = &at.fresh.home
		c.sessions.OpenNew(at.session, l.key(token))
	} else if at.session = c.sessions.Open(l.key(token)); !at.session.Lock(&at.budget) {
		at.session.Close()
		at.failure = errBusy
		return nil, at.ended()
	}
	at.fresh.token = token
	defer at.session.Close()
	defer at.session.Unlock()
	if named {
		if a := held(at.session, l.mode); a != nil {
			hold, err := at.reenter(a)
			if !errors.Is(err, ErrReleased) || at.budget.Err() != nil {
				return hold, err
			}
			// Another goroutine of the owner has just released it, without locking the session.
			at.failure, at.unknown, at.delay = nil, false, wait.Backoff{}
		}
		at.session.Do(func(ow *owned) { at.request.owner = ow.holder() }) // in the other mode
	}
	at.request.beside = at.request.owner != ""
	if !at.request.beside {
		at.request.owner = l.newOwner()
	} else if err := l.beside; err != nil {
		return nil, err
	} else if writer := held(at.session, exclusiveMode); writer != nil {
		writer.mu.Lock()
		writer.besides, at.fresh.besides = true, true
		writer.mu.Unlock()
	}
	return at.wait()
}

// try sends one request. If it returns neither a hold nor an error, it may be called again, unless
// at.left is set; at.failure says whether there was a reply. With at.left set the budget has ended,
// and the worker that sent the request cleans up, or the caller does if at.remains says so.
func (at *attempt) try() (hold *Hold, err error) {
	c := at.client
	at.sent, at.ticket = time.Now(), 0
	at.call.asks()
	got, state := reply{}, transport.NotSent
	if c.options.SyncReplicas == 0 {
		if call := c.calls.Begin(&at.budget, at.sent); call != nil {
			got, state, err = at.send(call)
		}
	}
	var before error
	if transport.Lost(err) { // the connection may have been idle, and closed long ago
		before, state = err, transport.NotSent
		at.remains = max(at.remains, waitqueue.Something)
	}
	if state == transport.NotSent {
		got, state, err = at.detach()
		err = transport.Resent(before, err)
		if state == transport.Refused {
			state = transport.StateOf(err)
		}
	}
	if state == transport.Abandoned {
		at.remains = waitqueue.Late
	}
	at.left = state == transport.Detached || state == transport.Abandoned && at.budget.Over()
	switch {
	case at.left:
		at.failure = transport.NoReply(at.failure)
	case got.short != nil: // it was undone
		return nil, got.short
	case err != nil:
		at.failure = err
		if state == transport.Unconfirmed || got.taken {
			at.remains = max(at.remains, waitqueue.Something)
		}
		at.unknown = at.unknown || state > transport.Refused
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
	case time.Until(watchdog.Deadline(at.sent, at.request.lease)) <= 0:
		at.failure = fmt.Errorf(
			"the lock was taken, but the reply took longer than the lease of %v", at.request.lease)
		at.remains = max(at.remains, waitqueue.Something)
		at.unknown = true
	default:
		at.fresh.registered = at.request.registers
		return at.begin(at.sent, at.request.lease, got.fence)
	}
	return nil, nil
}

// send sends the request, and ends the call even if a hook around rueidis ends the goroutine.
func (at *attempt) send(call *transport.Call) (got reply, state transport.State, err error) {
	err = transport.ErrThrown
	defer func() { state, err = call.End(err) }()
	got, err = at.lock.kind.acquire(call, at.client.redis, at.request)
	return got, state, err
}

// refusedRemains returns what a refused request leaves in Redis.
func (at *attempt) refusedRemains() waitqueue.Remains {
	if at.request.waits && at.lock.waiting.queued || at.request.registers {
		return waitqueue.Something
	}
	return waitqueue.Nothing
}

// detach sends the request from a worker, which cleans up after it if the caller leaves.
func (at *attempt) detach() (reply, transport.State, error) {
	detached := *at // a copy for the worker, so that at itself does not escape to the heap
	kind := transport.Acquire
	if at.client.options.SyncReplicas != 0 {
		kind = transport.Apart // it may wait for replicas
	}
	got, state, err := transport.Detach(at.client.calls, kind, &at.budget, &detached,
		(*attempt).ask, (*attempt).handleLateReply)
	if state == transport.Detached && at.lock.waiting.ownQueue {
		at.client.backlog.add(at.lock.name, 1)
	}
	return got, state, err
}

// handleLateReply handles the reply to a request whose caller has left.
func (at *attempt) handleLateReply(got reply, err error) {
	if at.lock.waiting.ownQueue {
		at.client.backlog.add(at.lock.name, -1)
	}
	if got.short != nil {
		return // it was undone
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

// begin returns the hold of a lock that was acquired for lease.
func (at *attempt) begin(since time.Time, lease time.Duration, fence int64) (*Hold, error) {
	a := at.fresh
	at.holder, at.failure = lua.Holder{Owner: at.request.owner, TTL: lease}, nil
	a.client, a.lock, a.session = at.client, at.lock, at.session
	a.owner, a.fence = at.request.owner, fence
	if at.remains == waitqueue.Late {
		late := at.request
		a.late = &late
	}
	hold := a.begin(at.budget.Ctx, watchdog.Deadline(since, lease), at.renew)
	a.endUntrusted()
	if at.budget.Closing() {
		// Close may have missed this acquisition: nobody would renew it or end its context.
		a.Drop()
		at.remains = max(at.remains, waitqueue.Something)
		return nil, ErrClosed
	}
	return hold, nil
}

// accept uses a grant. It returns neither a hold nor an error if too little of its lease is left.
func (at *attempt) accept(g waitqueue.Grant) (*Hold, error) {
	lease := at.request.grantLease
	most := lease / 10 // the caller gets about the lease it asked for
	if at.renew {
		most = lease / 2
	}
	if time.Since(g.Since) > most {
		at.remains = max(at.remains, waitqueue.Something)
		at.unknown = true
		return nil, nil
	}
	at.fresh.streak = g.Streak
	hold, err := at.begin(g.Since, lease, g.Fence)
	how := Granted
	if g.Local {
		how = HandedOver
	}
	at.call.given(how, lease)
	return hold, err
}

// finish ends the tries. Without a hold it removes in the background what they may have left in
// Redis, and returns err, or why the attempt ended.
func (at *attempt) finish(hold *Hold, err error) (*Hold, error) {
	if hold == nil && at.remains != waitqueue.Nothing {
		cu := at.cleanup(at.request, at.holder.TTL)
		cu.retry = at.remains == waitqueue.Late
		at.client.cleaner.add(cu)
	}
	if hold == nil && err == nil {
		err = at.ended()
	}
	return hold, err
}

// abandon ends the tries when foreign code has ended them, by a panic or by runtime.Goexit. Redis
// may have executed the last request.
func (at *attempt) abandon() {
	at.remains = max(at.remains, waitqueue.Something)
	at.endTry()
	if at.waiter == nil {
		_, _ = at.finish(nil, nil)
		return
	}
	if state, _ := at.waiter.State(); state == waitqueue.Asking || state == waitqueue.OfferedAsking {
		at.waiter.Reply(0, at.sent)
	}
	_, _ = at.leave(at.waiter, nil, nil)
}

// cleanup returns the cleanup of a request. Its time counts from now: a server that hung executes
// what is in its buffers when it goes on. heldFor is how long another owner has the lock.
func (at *attempt) cleanup(r request, heldFor time.Duration) cleanup {
	cu := cleanup{lock: at.lock, request: r, until: time.Now().Add(r.lasts(at.lock, heldFor))}
	if r.beside {
		cu.session = at.session
	}
	return cu
}

// lasts returns how long Redis keeps what a request creates; heldFor is that of cleanup.
func (r request) lasts(of *Lock, heldFor time.Duration) time.Duration {
	lasts := r.lease
	if of.waiting.queued {
		// A queue entry outlasts the holder's lease and the last request by twice the longest nap.
		// Each may be the longest Duration, so it is bounded: the sum must not overflow.
		const ever = 100 * 365 * 24 * time.Hour
		lasts = max(lasts, min(max(heldFor, 0), ever)+min(r.window, ever)+2*lua.MaxNap)
	}
	if r.registers {
		lasts = max(lasts, registrationKept)
	}
	return lasts
}

// heldError returns the error that names the holder by the last reply.
func (at *attempt) heldError() *HeldError {
	return newHeldError(at.lock, at.holder, at.request.waits || at.client.options.Debug)
}

// ended returns why an attempt ended without the lock, or why Redis refuses for good.
func (at *attempt) ended() error {
	reason, err := at.budget.Err(), at.failure
	busy := errors.Is(err, errBusy)
	unknown := err != nil && !busy && (at.unknown || rediserr.ClassOf(err) == rediserr.ClassUnknown)
	switch {
	case at.budget.Ctx.Err() == nil && at.budget.Closing() && !unknown:
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
