package rlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/internal/owner"
	"holdfast/internal/transport"
	"holdfast/internal/wait"
	"holdfast/internal/waitqueue"
	"holdfast/lua"
	"holdfast/watchdog"
)

// registrationKept is the longest time that Redis keeps a registration whose owner does not ask
// again.
const registrationKept = 3 * lua.MaxNap

// attempt is one call that wants a lock. One goroutine uses it.
type attempt struct {
	client  *Client
	lock    *Lock
	budget  wait.Budget
	request request // its owner is the name of the acquisition in Redis
	renew   bool
	token   owner.Token // identifies the owner in this process
	named   bool        // token comes from the caller's context
	session *lockSession
	fresh   *acquisition // preallocated; nil once used

	// The results of the tries so far.
	sent     time.Time        // when the last try was sent
	ticket   waitqueue.Ticket // of the registration, by the last reply; 0 if none
	holder   lua.Holder       // the holder by the last reply
	answered bool             // a try got a reply
	failure  error            // why the last try got no reply; nil if it did
	trace    trace
	streak   waitqueue.Streak // of the lock
}

// trace records what the tries of an attempt may have left in Redis: the lock, a registration, or a
// queue entry.
type trace uint8

// In ascending order.
const (
	noTrace   trace = iota
	something       // must be cleaned up
	late            // a command may still be executed at any time
)

// newAttempt checks the arguments of a call. The caller calls end.
func (l *Lock) newAttempt(ctx context.Context, delay, lease time.Duration) (*attempt, error) {
	if l.invalid != nil {
		return nil, l.invalid
	}
	c := l.client
	renew, grantLease := lease == Watchdog, lease
	if renew {
		lease, grantLease = c.options.WatchdogLease, c.options.grantLease()
	}
	lease, err := wholeLease(lease)
	if err != nil {
		return nil, err
	}
	if !renew {
		grantLease = lease
	}
	limit, window := delay, c.options.FairWindow
	switch {
	case delay == NoWait:
		limit = c.options.CommandTimeout
	case delay != wait.Unlimited:
		limit = max(delay, shortestWait)
		window = limit
	}
	if !c.tasks.Enter() {
		return nil, ErrClosed
	}
	at := &attempt{client: c, lock: l, renew: renew, fresh: new(acquisition),
		request: request{
			lease:      lease,
			grantLease: grantLease,
			waits:      delay != NoWait,
			window:     window,
		}}
	if at.token, at.named = owner.From(ctx); !at.named {
		at.token = owner.New()
	}
	at.budget.Begin(ctx, c.closing, limit)
	at.request.until = at.budget.Until
	return at, nil
}

// end releases what newAttempt acquired.
func (at *attempt) end() {
	at.budget.Stop()
	at.client.tasks.Leave()
}

// run acquires the lock, or returns why not. It locks the owner's session first: calls of one owner
// talk to Redis about a lock one at a time.
func (at *attempt) run() (*Hold, error) {
	if at.budget.Err() != nil {
		return nil, at.ended()
	}
	c := at.client
	key := sessionKey{at.lock.family, at.lock.name, at.token}
	if at.named {
		at.session = c.sessions.Open(key)
	} else {
		at.session = &at.fresh.home
		c.sessions.OpenNew(at.session, key)
	}
	defer at.session.Close()
	if at.named && !at.session.Lock(&at.budget) {
		return nil, at.ended()
	}
	defer at.session.Unlock()
	if at.named {
		if hold, done, err := at.rejoin(); done {
			return hold, err
		}
	}
	if at.request.owner == "" {
		at.request.owner = c.newOwner()
	}
	if at.request.waits {
		return at.wait()
	}
	hold, left, err := at.try()
	if hold == nil && (!left || at.trace == late) {
		at.cleanUp()
	}
	if hold == nil && err == nil {
		err = at.ended()
	}
	return hold, err
}

// rejoin handles an owner that holds the lock already, in this mode or the other. done says that
// this decides the attempt.
func (at *attempt) rejoin() (hold *Hold, done bool, err error) {
	if a := held(at.session, at.lock.mode); a != nil {
		hold, err := at.reenter(a)
		if !errors.Is(err, ErrReleased) || at.budget.Err() != nil {
			return hold, true, err
		}
		// Another goroutine of this owner has just released the lock without locking the session.
		// This caller starts afresh.
		at.failure = nil
	}
	if at.request.owner = holder(at.session); at.request.owner != "" {
		at.request.beside = true
		err = at.lock.beside
	}
	return nil, err != nil, err
}

// try sends one request. Without a hold and an error it may be tried again; failure says whether
// there was a reply. With left set the budget ended before the reply. The worker that sent the
// request then cleans up, or the caller does if trace says so.
func (at *attempt) try() (hold *Hold, left bool, err error) {
	c := at.client
	at.sent, at.ticket = time.Now(), 0
	answer, state := reply{}, transport.NotSent
	if c.options.SyncReplicas == 0 {
		if call := c.calls.Begin(&at.budget); call != nil {
			answer, err = at.lock.kind.acquire(call, c.redis, at.request)
			state, err = call.End(err)
		}
	}
	if state == transport.NotSent {
		answer, state, err = at.detach()
	}
	switch state {
	case transport.Abandoned:
		at.trace = late
		left = at.budget.Over()
	case transport.Detached:
		left = true
	case transport.Unconfirmed:
		if !errors.Is(err, ErrNotReplicated) { // which was undone
			at.trace = max(at.trace, something)
		}
	case transport.Answered, transport.Refused, transport.NotSent:
	}
	switch {
	case left:
		at.unanswered()
		return nil, true, nil
	case errors.Is(err, ErrNotReplicated):
		return nil, false, err
	case err != nil:
		at.failure = err
		if answer.taken {
			at.trace = max(at.trace, something)
		}
		if c.transport.Permanent(err) {
			return nil, false, at.unavailable()
		}
		return nil, false, nil
	case answer.holder != nil:
		at.answered, at.holder, at.ticket, at.failure = true, *answer.holder, answer.ticket, nil
		if at.trace != late {
			at.trace = at.remains()
		}
		return nil, false, nil
	}
	deadline := watchdog.Deadline(at.sent, at.request.lease)
	if !time.Now().Before(deadline) {
		at.failure = fmt.Errorf(
			"the lock was taken, but the answer took longer than the lease of %v", at.request.lease)
		at.trace = max(at.trace, something)
		return nil, false, nil
	}
	hold, err = at.begin(deadline, answer.fence, at.request.registers)
	return hold, false, err
}

// unanswered notes that the budget ended before the reply.
func (at *attempt) unanswered() {
	switch {
	case at.answered:
	case at.failure == nil, errors.Is(at.failure, transport.ErrNoAnswer):
		at.failure = transport.ErrNoAnswer
	default: // the error before is more helpful
		at.failure = fmt.Errorf("%w; before that: %w", transport.ErrNoAnswer, at.failure)
	}
}

// remains returns what a refused request leaves in Redis.
func (at *attempt) remains() trace {
	if at.request.waits && at.lock.waiting.queued || at.request.registers {
		return something
	}
	return noTrace
}

// detach sends the request from a worker, so that the caller can leave at any time. The worker then
// cleans up what the request may have left.
func (at *attempt) detach() (reply, transport.State, error) {
	c, before, holds, remains := at.client, at.trace, at.holder.TTL, at.remains()
	r, ownQueue := at.request, at.lock.waiting.ownQueue
	answer, state, err := transport.Detach(c.calls, &at.budget,
		func(ctx context.Context) (reply, error) { return at.ask(ctx, r) },
		func(answer reply, err error) {
			if ownQueue {
				c.backlog.answered(at.lock.name)
			}
			refused := err != nil && !answer.taken && lua.ClassOf(err) != lua.Unknown &&
				before == noTrace
			if err == nil && answer.holder != nil {
				refused, holds = remains == noTrace, answer.holder.TTL
			}
			if !refused {
				c.cleaner.add(at.cleanup(r, holds))
			}
		})
	if state == transport.Detached && ownQueue {
		c.backlog.left(at.lock.name)
	}
	return answer, state, err
}

// begin returns the hold of a lock that was acquired. registered says that a grant message may
// still arrive.
func (at *attempt) begin(deadline time.Time, fence int64, registered bool) (*Hold, error) {
	a := at.fresh
	if at.fresh = nil; a == nil {
		a = new(acquisition)
	}
	a.client, a.lock, a.session, a.token = at.client, at.lock, at.session, at.token
	a.owner, a.fence, a.registered, a.streak = at.request.owner, fence, registered, at.streak
	if at.trace == late {
		r := at.request
		a.late = &r
	}
	hold := a.begin(at.budget.Ctx, deadline, at.renew)
	a.endUntrusted()
	if at.budget.Closing() {
		// Close may have missed this acquisition: nobody would renew it or end its context.
		a.finish()
		at.trace = max(at.trace, something)
		return nil, ErrClosed
	}
	return hold, nil
}

// accept uses a grant. Without a hold and an error too little is left of the lease, and the caller
// asks for the lock again.
func (at *attempt) accept(g waitqueue.Grant) (*Hold, error) {
	at.streak = g.Streak
	lease := at.request.grantLease
	most := lease / 10 // the caller gets about the lease it asked for
	if at.renew {
		most = lease / 2
	}
	if time.Since(g.Since) > most {
		at.trace = max(at.trace, something)
		return nil, nil
	}
	return at.begin(watchdog.Deadline(g.Since, lease), g.Fence, false)
}

// cleanUp removes what the tries may have left in Redis, in the background.
func (at *attempt) cleanUp() {
	if at.trace == noTrace {
		return
	}
	cu := at.cleanup(at.request, at.holder.TTL)
	cu.retry = at.trace == late
	at.client.cleaner.add(cu)
}

// cleanup returns the cleanup of a request. Its time counts from now, not from when the request was
// sent: a server that hung executes what is in its buffers when it goes on. A queue entry lasts as
// long as the lock is held, for holds; it is not read from the attempt, which may have gone on when
// a late reply arrives.
func (at *attempt) cleanup(r request, holds time.Duration) cleanup {
	cu := cleanup{lock: at.lock, request: r, until: time.Now().Add(r.lasts(at.lock, holds))}
	if r.beside {
		cu.session = at.session
	}
	return cu
}

// lasts returns for how long Redis keeps what a request creates, if another owner has the lock for
// holds.
func (r request) lasts(of *Lock, holds time.Duration) time.Duration {
	lasts := r.lease
	if of.waiting.queued {
		// A queue entry outlasts the holder's lease and the last request by twice the longest nap.
		// Either may be the longest Duration, so their sum is bounded.
		const ever = 100 * 365 * 24 * time.Hour
		lasts = max(lasts, min(max(holds, 0), ever)+min(r.window, ever)+2*lua.MaxNap)
	}
	if r.registers {
		lasts = max(lasts, registrationKept)
	}
	return lasts
}

// errUnsent is transport.ErrNoAnswer for an attempt that sent nothing, whose outcome is therefore
// known.
var errUnsent = &lua.Error{Class: lua.Temporary, Message: transport.ErrNoAnswer.Message,
	Advice: transport.ErrNoAnswer.Advice}

// ended returns why an attempt ended without the lock.
func (at *attempt) ended() error {
	reason := at.budget.Err()
	switch {
	case errors.Is(reason, ErrClosed):
		return ErrClosed
	case at.failure != nil:
		return at.unavailable()
	default:
		return &HeldError{
			Lock:  at.lock.name,
			Owner: at.holder.Owner,
			TTL:   at.holder.TTL,
			Next:  at.holder.Next,
			cause: reason,
		}
	}
}

// unavailable returns why Redis did not reply, and why the budget ended if it has.
func (at *attempt) unavailable() error {
	err := at.failure
	if lua.ClassOf(err) == lua.Unknown {
		err = fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	}
	return at.budget.Because(err)
}
