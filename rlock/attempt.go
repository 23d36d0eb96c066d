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

// registrationKept is how long Redis keeps a registration at most that nobody asks for.
const registrationKept = 3 * lua.MaxNap

// attempt is one caller's way to a lock. It is used by one goroutine.
type attempt struct {
	client  *Client
	lock    *Lock
	budget  wait.Budget
	request request // its owner is that of this acquisition, in Redis
	renew   bool
	token   owner.Token // in this process
	named   bool        // the caller gave it
	session *lockSession
	fresh   *acquisition // preallocated; nil once used

	// What the tries so far have left behind.
	sent     time.Time        // when the last one was sent
	ticket   waitqueue.Ticket // the last answer: of the registration of this owner; 0 if it has none
	holder   lua.Holder       // the last answer: who is in the way
	answered bool             // one of them got an answer
	failure  error            // why the last one got no answer; nil if it did
	trace    trace
	streak   waitqueue.Streak // of the lock
}

// trace is what the tries of an attempt may have left in Redis: the lock, a registration, a place
// in a queue.
type trace uint8

// The least first.
const (
	noTrace   trace = iota
	something       // it has to be cleaned up
	late            // also by a command that may be executed at any time
)

// newAttempt checks what a caller asks for. The caller ends the attempt.
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
	a := &attempt{client: c, lock: l, renew: renew, fresh: new(acquisition),
		request: request{
			lease:      lease,
			grantLease: grantLease,
			waits:      delay != NoWait,
			window:     window,
		}}
	if a.token, a.named = owner.From(ctx); !a.named {
		a.token = owner.New()
	}
	a.budget.Begin(ctx, c.closing, limit)
	a.request.until = a.budget.Until
	return a, nil
}

// end gives back what newAttempt took.
func (at *attempt) end() {
	at.budget.Stop()
	at.client.tasks.Leave()
}

// run gets the lock, or says why not. It locks the owner's session first: while another call of the
// same owner talks to Redis about this lock, this one must not.
func (at *attempt) run() (*Hold, error) {
	if at.budget.Err() != nil {
		return nil, at.ended()
	}
	c, kind := at.client, at.lock.kind
	key := sessionKey{kind.family(), at.lock.name, at.token}
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

// rejoin deals with what the owner holds already. It is done if that decides the attempt.
func (at *attempt) rejoin() (hold *Hold, done bool, err error) {
	if h := held(at.session, at.lock.kind.mode()); h != nil {
		hold, err := at.reenter(h)
		if !errors.Is(err, ErrReleased) || at.budget.Err() != nil {
			return hold, true, err
		}
		// Another goroutine of this owner has released the lock meanwhile without locking the
		// session. This one is the first again.
		at.failure = nil
	}
	if at.request.owner = holder(at.session); at.request.owner != "" {
		at.request.beside = true
		err = at.lock.kind.beside()
	}
	return nil, err != nil, err
}

// try sends one request. Without a hold and an error it may be tried again; failure says whether
// there was an answer. With left set the budget ended before the answer came: a worker that sent
// the request looks after that, or the caller does, see trace.
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
		if !errors.Is(err, ErrNotReplicated) { // it was undone
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
			"the lock was taken, but the answer took longer than the lease of %v",
			at.request.lease,
		)
		at.trace = max(at.trace, something)
		return nil, false, nil
	}
	hold, err = at.begin(deadline, answer.fence, at.request.registers)
	return hold, false, err
}

// unanswered notes that the budget ended before the answer came.
func (at *attempt) unanswered() {
	switch {
	case at.answered:
	case at.failure == nil, errors.Is(at.failure, transport.ErrNoAnswer):
		at.failure = transport.ErrNoAnswer
	default: // what went wrong before says more about what to do
		at.failure = fmt.Errorf("%w; before that: %w", transport.ErrNoAnswer, at.failure)
	}
}

// remains returns what a refused request leaves in Redis.
func (at *attempt) remains() trace {
	if at.request.waits && at.lock.kind.queued() || at.request.registers {
		return something
	}
	return noTrace
}

// detach has a worker send the request, so that the caller can leave at any time. What may have
// been done for one that left is cleaned up when the answer comes.
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

// begin makes the hold of a lock that was acquired. registered says that a grant message may still
// arrive.
func (at *attempt) begin(deadline time.Time, fence int64, registered bool) (*Hold, error) {
	h := at.fresh
	if at.fresh = nil; h == nil {
		h = new(acquisition)
	}
	h.client, h.lock, h.session, h.token = at.client, at.lock, at.session, at.token
	h.owner, h.fence, h.registered, h.streak = at.request.owner, fence, registered, at.streak
	if at.trace == late {
		r := at.request
		h.late = &r
	}
	hold := h.begin(at.budget.Ctx, deadline, at.renew)
	at.lock.kind.began(h)
	if at.budget.Closing() {
		// Too late for Close to know of it: nobody would renew it or end its context.
		h.finish()
		at.trace = max(at.trace, something)
		return nil, ErrClosed
	}
	return hold, nil
}

// accept takes a lock that was granted. Without a hold and an error too little is left of its
// lease, which is to be asked for again.
func (at *attempt) accept(g waitqueue.Grant) (*Hold, error) {
	at.streak = g.Streak
	lease := at.request.grantLease
	most := lease / 10 // of an explicit lease, so that it is about what the caller asked for
	if at.renew {
		most = lease / 2
	}
	if time.Since(g.Since) > most {
		at.trace = max(at.trace, something)
		return nil, nil
	}
	return at.begin(watchdog.Deadline(g.Since, lease), g.Fence, false)
}

// cleanUp has what the tries may have left in Redis removed in the background.
func (at *attempt) cleanUp() {
	if at.trace == noTrace {
		return
	}
	l := at.cleanup(at.request, at.holder.TTL)
	l.retry = at.trace == late
	at.client.cleaner.add(l)
}

// cleanup returns what a request may have left in Redis. Its time counts from now, not from when
// the request was sent: a server that hung executes what it finds in its buffers when it goes on. A
// place in a queue is for as long as somebody holds the lock, which is not read from the attempt:
// late answers are looked after when its goroutine has gone on.
func (at *attempt) cleanup(r request, holds time.Duration) cleanup {
	l := cleanup{lock: at.lock, request: r, until: time.Now().Add(r.lasts(at.lock, holds))}
	if r.beside {
		l.session = at.session
	}
	return l
}

// lasts returns for how long Redis keeps what it gives for a request, if somebody has the lock for
// as long as holds.
func (r request) lasts(of *Lock, holds time.Duration) time.Duration {
	lasts := r.lease
	if of.kind.queued() {
		// A place in a queue outlasts the holder's lease and the last request by twice the longest
		// nap. Either may be as long as a Duration can be, and their sum must still be one.
		const ever = 100 * 365 * 24 * time.Hour
		lasts = max(lasts, min(max(holds, 0), ever)+min(r.window, ever)+2*lua.MaxNap)
	}
	if r.registers {
		lasts = max(lasts, registrationKept)
	}
	return lasts
}

// errUnsent is transport.ErrNoAnswer for an attempt that sent nothing, so that its outcome is
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

// unavailable returns why Redis did not give an answer, and what else is true of the attempt.
func (at *attempt) unavailable() error {
	err := at.failure
	if lua.ClassOf(err) == lua.Unknown {
		err = fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	}
	return at.budget.Because(err)
}
