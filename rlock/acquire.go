package rlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"holdfast/internal/owner"
	"holdfast/lua"
	"holdfast/watchdog"
)

// longestPark is how long a waiter sleeps at most before it looks by itself. It bounds the harm of a wake-up that never
// comes: an ACL that forbids the channel, a message lost with a failover.
const longestPark = lua.MaxNap

// placeKept is for how long Redis keeps a place at most that nobody asks for.
const placeKept = 3 * lua.MaxNap

// attempt is one caller's way to a lock. It is used by one goroutine.
type attempt struct {
	client   *Client
	lock     *Lock
	ctx      context.Context
	patience *patience
	time     patience
	bid      bid // whose owner is of this acquisition, in Redis
	renew    bool
	token    owner.Token // in this process
	named    bool        // the caller gave it
	fresh    *holding    // the one to be made of what is acquired; nil when it was
	seat     *seat
	writing  bool // the owner has the write lock, and asks to read

	// What the tries so far left behind.
	answered bool       // one of them got an answer
	holder   lua.Holder // the last answer: who is in the way
	ticket   lua.Ticket // the last answer: of this attempt's place in Redis; 0 if it has none
	sent     time.Time  // when the last try was sent
	failure  error      // why the last try got no answer; nil if it did
	doubt    bool       // one of them may have taken the lock without our knowing, or a place in its queue
	placed   bool       // it may have a place among those who are given the lock
	adrift   bool       // one of them may be executed at any time
	told     bool       // a message may come still that says that it was given the lock, though it has that by asking
	journey  journey    // of the lock
}

// run gets the lock, or tells why not. It waits for its turn at the owner's seat first: while another call of the same
// owner talks to Redis about this lock, this one must not.
func (a *attempt) run() (*Hold, error) {
	if a.patience.reason() != nil {
		return nil, a.ended()
	}
	a.fresh = new(holding)
	at := a.lock.place(a.token)
	if !a.named {
		a.seat = a.client.seats.enterNew(&a.fresh.home, at)
		defer a.seat.leave()
		defer a.seat.pass()
		a.bid.owner = a.client.newOwner()
		return a.take()
	}
	a.seat = a.client.seats.enter(at)
	defer a.seat.leave()
	if !a.seat.claim(a.patience) {
		return nil, a.ended()
	}
	defer a.seat.pass()
	if h := a.seat.held(a.lock.side); h != nil {
		hold, err := a.reenter(h)
		if !errors.Is(err, ErrReleased) || a.patience.reason() != nil {
			return hold, err
		}
		// Another goroutine of this owner released the lock meanwhile without getting a turn. This one is the first again.
		a.failure = nil
	}
	switch a.bid.owner = a.seat.owner(); {
	case a.bid.owner == "":
		a.bid.owner = a.client.newOwner()
	case a.lock.side == exclusive:
		return nil, errUpgrade
	default:
		a.writing = true
	}
	return a.take()
}

// take gets a lock that the owner does not hold.
func (a *attempt) take() (*Hold, error) {
	if a.bid.waits {
		return a.wait()
	}
	hold, _, err := a.once()
	if hold == nil && err == nil {
		a.giveUp()
		err = a.ended()
	}
	return hold, err
}

// once tries without standing in line. Without a hold and an error it may be tried again.
func (a *attempt) once() (hold *Hold, left bool, err error) {
	hold, left, err = a.try()
	switch {
	case hold != nil:
		return hold, false, nil
	case left:
		return nil, true, a.ended()
	case err != nil:
		a.giveUp()
	}
	return nil, false, err
}

// wait gets the lock, and stands in line for it if it is not free.
func (a *attempt) wait() (*Hold, error) {
	if a.queuesAlone() && !a.client.backlog.await(a.lock.name, a.patience) {
		a.failure = errUnsent
		return nil, a.ended()
	}
	call := a.lock.kind.call(a.bid.owner)
	if a.writing {
		call.line.kind = a.bid.owner // the readers in line wait for this very owner
	}
	ls, as := a.client.lines, heir{owner: a.bid.owner, lease: a.bid.gift}
	slot := ls.slot(call.line)
	alone := slot.alone()
	var spot *spot
	if !alone || call.places {
		spot = ls.join(call, as, alone)
	}
	if spot == nil {
		hold, left, err := a.once()
		if hold != nil || left || err != nil {
			slot.trying.Add(-1)
			return hold, err
		}
		spot = ls.join(call, as, false)
		if spot.first {
			a.learn(spot)
		}
	}
	if alone {
		slot.trying.Add(-1)
	}
	// With a subscription that was there before nothing tells what was missed since the first try.
	return a.queue(spot, spot.first && (a.sent.IsZero() || spot.resumed))
}

// queuesAlone reports whether each waiter asks Redis itself, instead of the head of a local queue for all.
func (a *attempt) queuesAlone() bool { return a.lock.kind.batch() > 1 }

// learn notes for all in line what the last try was answered.
func (a *attempt) learn(s *spot) {
	if a.failure != nil {
		s.line.failed(a.failure)
	} else {
		s.line.refused(a.holder)
	}
}

// queue stands in line until this attempt is at its head, and then tries whenever there is a reason to; or until it is given
// the lock.
func (a *attempt) queue(spot *spot, look bool) (*Hold, error) {
	var (
		delay backoff
		head  = spot.first
	)
	for {
		var (
			present gift
			given   bool
		)
		if look {
			a.bid.waited = spot.waited()
			a.bid.enlists = spot.asks()
			a.journey.run = run{began: time.Now()} // if it is had by asking
			hold, left, err := a.try()
			present, given = spot.hears(a.ticket, a.sent)
			switch {
			case hold != nil:
				spot.line.answered(lua.Holder{Owner: hold.Owner(), TTL: a.bid.lease})
				spot.keep()
				spot.leave(a.lock.side == shared) // what one reader got the next one gets
				return hold, nil
			case left:
				a.holder = spot.line.expectation()
				if a.stepOut(spot) {
					a.giveUp()
				}
				return nil, a.ended()
			case err != nil:
				a.stepOut(spot)
				a.giveUp()
				return nil, err
			}
			a.learn(spot)
			if a.failure == nil {
				delay = backoff{}
			}
		}
		if !given {
			var what event
			if head {
				pause := spot.line.park()
				if a.failure != nil {
					pause = delay.next()
				}
				what, present = spot.park(a.patience, pause, spot.line.wakeUps())
			} else if what, present = spot.await(a.patience); what == looks && a.late(spot) {
				what = heads
			}
			if what == over {
				return nil, a.leave(spot)
			}
			head, look, given = true, what == looks, what == has
		}
		if given {
			hold, err := a.accept(present)
			if hold != nil || err != nil {
				spot.line.answered(lua.Holder{Owner: a.bid.owner, TTL: a.bid.gift})
				if hold != nil {
					spot.keep()
				}
				if spot.leave(false); err != nil {
					a.giveUp()
				}
				return hold, err
			}
			look = true // the lock may be ours, and Redis says so if it is
		}
	}
}

// late reports whether an attempt that became head has too little time left for an answer. It then waits for a message only: a
// request would end with an unknown outcome. The next head looks instead.
func (a *attempt) late(s *spot) bool {
	until := a.patience.until
	return a.sent.IsZero() && !until.IsZero() && time.Until(until) < shortestWait && s.line.trouble() == nil
}

// accept takes a lock that was given. Without a hold and an error too little is left of its lease, which is to be asked for
// again then.
func (a *attempt) accept(g gift) (*Hold, error) {
	a.journey = g.journey
	lease := a.bid.gift
	most := lease / 10 // of an explicit lease, so that it is about what the caller asked for
	if a.renew {
		most = lease / 2
	}
	if time.Since(g.since) > most {
		a.doubt = true
		return nil, nil
	}
	return a.start(watchdog.Deadline(g.since, lease), g.fence)
}

// stepOut leaves the line, and returns whether something may remain in Redis. The next in line looks at once: a wake-up may
// have come for this attempt while it left.
func (a *attempt) stepOut(s *spot) (remains bool) {
	if s.leave(true) {
		a.doubt, a.placed = true, true
	}
	return a.doubt
}

// leave gives up in the line, and says why.
func (a *attempt) leave(s *spot) error {
	a.holder = s.line.expectation()
	if a.sent.IsZero() {
		// Nobody but the head has asked. Its trouble is everybody's, and no reason to believe that somebody has the lock.
		a.failure = s.line.trouble()
	}
	a.stepOut(s)
	a.giveUp()
	return a.ended()
}

// giveUp undoes in the background what a try may have done.
func (a *attempt) giveUp() {
	if a.doubt {
		b := a.bid
		b.enlists = b.enlists || a.placed
		l := a.leftover(b, a.holder.TTL)
		l.adrift = a.adrift
		a.client.janitor.add(l)
	}
}

// leftover is what a try with b may have left in Redis. Its time counts from now, not from when the try was sent: a server that
// hung executes what it finds in its buffers when it goes on. A place in a queue is for as long as whoever holds the lock
// has it for still, which is not read from the attempt: late answers are looked after when its goroutine has gone on.
func (a *attempt) leftover(b bid, held time.Duration) leftover {
	l := leftover{lock: a.lock, bid: b, until: time.Now().Add(b.lasts(a.lock, held))}
	if a.writing {
		l.seat = a.seat
	}
	return l
}

// lasts is for how long Redis keeps what it gives for a bid, if somebody has the lock for as long as held.
func (b bid) lasts(of *Lock, held time.Duration) time.Duration {
	lasts := b.lease
	if of.kind.queues() {
		// A place in a queue outlasts the holder's lease and the last question by twice the longest nap. Either may be as
		// long as a Duration can be, and their sum must still be one.
		const ever = 100 * 365 * 24 * time.Hour
		lasts = max(lasts, min(max(held, 0), ever)+min(b.window, ever)+2*lua.MaxNap)
	}
	if b.enlists {
		lasts = max(lasts, placeKept)
	}
	return lasts
}

// try asks Redis once. Without a hold and an error it may be tried again; failure says whether there was an answer. With
// left = true patience ended before the answer came, which is looked after then.
func (a *attempt) try() (hold *Hold, left bool, err error) {
	a.sent, a.ticket = time.Now(), 0
	c := a.client
	var answer grant
	if direct, ok := c.flights.board(a.patience, a.sent); ok && c.options.SyncReplicas == 0 {
		answer, err = a.ask(direct, a.bid)
		if c.flights.landDirect(a.sent, err) {
			a.adrift, err = true, errNoAnswer
		}
	} else {
		answer, left, err = a.tryInBackground()
	}
	switch {
	case left:
		switch {
		case a.answered:
		case a.failure == nil, errors.Is(a.failure, errNoAnswer):
			a.failure = errNoAnswer
		default: // what went wrong before says more about what to do
			a.failure = fmt.Errorf("%w; before that: %w", errNoAnswer, a.failure)
		}
		return nil, true, nil
	case errors.Is(err, ErrNotReplicated):
		return nil, false, err
	case err != nil:
		a.failure = err
		a.doubt = a.doubt || answer.taken || lua.ClassOf(err) == lua.Unknown
		if c.hopeless(err) {
			return nil, false, a.unavailable()
		}
		return nil, false, nil
	case answer.holder != nil:
		a.answered, a.holder, a.ticket, a.failure = true, *answer.holder, answer.ticket, nil
		a.doubt = a.remains()
		return nil, false, nil
	}
	deadline := watchdog.Deadline(a.sent, a.bid.lease)
	if !time.Now().Before(deadline) {
		a.failure = fmt.Errorf("the lock was taken, but the answer took longer than the lease of %v", a.bid.lease)
		a.doubt = true
		return nil, false, nil
	}
	a.told = a.bid.enlists
	hold, err = a.start(deadline, answer.fence)
	return hold, false, err
}

// remains tells whether a refused try leaves something in Redis.
func (a *attempt) remains() bool { return a.bid.waits && a.lock.kind.queues() || a.bid.enlists }

// tryInBackground asks in a goroutine of its own, so that the caller can leave at any time. What may have been done for one
// that left is undone when the answer comes.
func (a *attempt) tryInBackground() (answer grant, left bool, err error) {
	c, doubt, held, remains := a.client, a.doubt, a.holder.TTL, a.remains()
	bid, alone := a.bid, a.queuesAlone()
	ask := func() (grant, error) { return a.ask(context.Background(), bid) }
	answer, left, err = await(c, a.patience, ask, func(answer grant, err error) {
		if alone {
			c.backlog.answered(a.lock.name)
		}
		heldByOther := err == nil && answer.holder != nil && !remains
		refused := err != nil && !answer.taken && lua.ClassOf(err) != lua.Unknown
		if err == nil && answer.holder != nil {
			held = answer.holder.TTL
		}
		if !heldByOther && (doubt || !refused) {
			c.janitor.add(a.leftover(bid, held))
		}
	})
	if left && alone {
		c.backlog.left(a.lock.name)
	}
	return answer, left, err
}

// start makes the hold of a lock that was acquired.
func (a *attempt) start(deadline time.Time, fence int64) (*Hold, error) {
	hold := a.begin(deadline, fence)
	select {
	case <-a.patience.closing:
		// Too late for Close to know of it: nobody would renew it or end its context.
		hold.tenure.(*holding).forget()
		a.doubt = true
		return nil, ErrClosed
	default:
		return hold, nil
	}
}

// begin makes the holding of a lock that was acquired.
func (a *attempt) begin(deadline time.Time, fence int64) *Hold {
	c := a.client
	h := a.fresh
	if a.fresh = nil; h == nil {
		h = new(holding)
	}
	h.client, h.lock, h.seat, h.token, h.owner, h.fence = c, a.lock, a.seat, a.token, a.bid.owner, fence
	h.told, h.journey = a.told, a.journey
	if a.adrift {
		b := a.bid
		b.enlists = b.enlists || a.placed
		h.adrift = &b
	}
	level := h.begin(a.ctx, deadline, a.renew)
	if a.lock.outlived() {
		a.seat.settle() // the owner may have ceased to write meanwhile
	}
	return level
}

// hopeless tells that waiting does not help against err.
func (c *Client) hopeless(err error) bool {
	if c.redis.Mode() == rueidis.ClientModeStandalone {
		return lua.ClassOf(err) == lua.Permanent || errors.Is(err, rueidis.ErrClosing) // by its owner
	}
	// Sentinel and Cluster replace the server behind a name: rueidis closes the old connections, and may for a moment
	// still reach a master that has become a replica.
	var refusal *ServerError
	failingOver := errors.As(err, &refusal) && refusal.Code == "READONLY"
	return lua.ClassOf(err) == lua.Permanent && !failingOver
}

// errNoAnswer is the failure of a try that patience cut short.
var errNoAnswer = &lua.Error{Class: lua.Unknown, Message: "no answer from Redis in time",
	Advice: "is the server up, is it busy, and is rueidis.ClientOption.TLSConfig right for it?"}

// errUnsent is errNoAnswer for an attempt that sent nothing, so that its outcome is known.
var errUnsent = &lua.Error{Class: lua.Temporary, Message: errNoAnswer.Message, Advice: errNoAnswer.Advice}

// ended says why an attempt ended without the lock.
func (a *attempt) ended() error {
	reason := a.patience.reason()
	switch {
	case errors.Is(reason, ErrClosed):
		return ErrClosed
	case a.failure != nil:
		return a.unavailable()
	default:
		return &HeldError{Lock: a.lock.name, Owner: a.holder.Owner, TTL: a.holder.TTL, Next: a.holder.Next, cause: reason}
	}
}

// unavailable says why Redis did not give an answer, and what else is true of the attempt.
func (a *attempt) unavailable() error {
	err := a.failure
	if lua.ClassOf(err) == lua.Unknown {
		err = fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	}
	if reason := a.patience.reason(); reason != nil {
		err = fmt.Errorf("%w: %w", reason, err)
	}
	return err
}
