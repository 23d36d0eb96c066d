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

// attempt is one caller's way to a lock. It is used by one goroutine.
type attempt struct {
	client   *Client
	lock     *Lock
	ctx      context.Context
	patience *patience
	bid      bid // whose owner is of this acquisition, in Redis
	renew    bool
	token    owner.Token // in this process
	seat     *seat
	writing  bool // the owner has the write lock, and asks to read

	// What the tries so far left behind.
	answered bool       // one of them got an answer
	holder   lua.Holder // the last answer: who is in the way
	sent     time.Time  // when the last try was sent
	failure  error      // why the last try got no answer; nil if it did
	doubt    bool       // one of them may have taken the lock without our knowing, or a place in its queue
}

// run gets the lock, or tells why not. It waits for its turn at the owner's seat first: while another call of the same
// owner talks to Redis about this lock, this one must not.
func (a *attempt) run() (*Hold, error) {
	if a.patience.reason() != nil {
		return nil, a.ended()
	}
	a.seat = a.client.seats.enter(a.lock.place(a.token))
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
		return nil, ErrUpgrade
	default:
		a.writing = true
	}
	if a.bid.waits {
		return a.queue()
	}
	return a.tryOnce()
}

// tryOnce is an attempt without wait. It does not stand in line: that would be waiting.
func (a *attempt) tryOnce() (*Hold, error) {
	hold, left, err := a.try()
	switch {
	case hold != nil:
		return hold, nil
	case left:
		return nil, a.ended()
	}
	a.giveUp()
	if err == nil {
		err = a.ended()
	}
	return nil, err
}

// queue stands in line until this attempt is at its head, and then tries whenever there is a reason to.
func (a *attempt) queue() (*Hold, error) {
	call := a.lock.kind.call(a.bid.owner)
	if a.writing {
		call.line = a.bid.owner // the readers in line wait for this very owner
	}
	spot := a.client.lines.join(call)
	look, ok := spot.advance(a.patience)
	if !ok {
		return nil, a.leave(spot)
	}
	var delay backoff
	for {
		if look {
			a.bid.waited = spot.waited()
			hold, left, err := a.try()
			switch {
			case hold != nil:
				spot.line.answered(lua.Holder{Owner: hold.Owner(), TTL: a.bid.lease})
				spot.leave(a.lock.side == shared) // what one reader got the next one gets
				return hold, nil
			case left:
				if errors.Is(a.failure, errNoAnswer) && spot.line.trouble() == nil && time.Since(a.sent) < shortestWait {
					a.failure = nil // nobody answers that fast, and the line knows who has the lock
				}
				a.holder = spot.line.expectation()
				spot.leave(true)
				return nil, a.ended()
			case err != nil:
				spot.leave(true)
				a.giveUp()
				return nil, err
			case a.failure == nil:
				spot.line.refused(a.holder)
				delay = backoff{}
			default:
				spot.line.failed(a.failure)
			}
		}
		pause := spot.line.park()
		if a.failure != nil {
			pause = delay.next()
		}
		if !a.patience.sleep(pause, spot.line.wakeUps()) {
			return nil, a.leave(spot)
		}
		look = true
	}
}

// leave gives up in the line, and says why. The next in line looks at once: a wake-up may have come for this attempt
// while it left.
func (a *attempt) leave(s *spot) error {
	a.holder = s.line.expectation()
	if a.sent.IsZero() {
		// Nobody but the head has asked. Its trouble is everybody's, and no reason to believe that somebody has the lock.
		a.failure = s.line.trouble()
	}
	s.leave(true)
	a.giveUp()
	return a.ended()
}

// giveUp undoes in the background what a try may have done.
func (a *attempt) giveUp() {
	if a.doubt {
		a.client.janitor.add(a.leftover(a.holder.TTL))
	}
}

// leftover is what a try may have left in Redis. Its time counts from now, not from when the try was sent: a server that
// hung executes what it finds in its buffers when it goes on. A place in a queue is for as long as whoever holds the lock
// has it for still, which is not read from the attempt: late answers are looked after when its goroutine has gone on.
func (a *attempt) leftover(held time.Duration) leftover {
	lasts := a.bid.lease
	if a.lock.kind.queues() {
		// A place in a queue outlasts the holder's lease and the last question by twice the longest nap. Either may be as
		// long as a Duration can be, and their sum must still be one.
		const ever = 100 * 365 * 24 * time.Hour
		lasts = max(lasts, min(max(held, 0), ever)+min(a.bid.window, ever)+2*lua.MaxNap)
	}
	l := leftover{lock: a.lock, bid: a.bid, until: time.Now().Add(lasts)}
	if a.writing {
		l.seat = a.seat
	}
	return l
}

// try asks Redis once. Without a hold and an error it may be tried again; failure says whether there was an answer. With
// left = true patience ended before the answer came, which is looked after then.
func (a *attempt) try() (hold *Hold, left bool, err error) {
	a.sent = time.Now()
	c, doubt, held := a.client, a.doubt, a.holder.TTL
	queued := a.bid.waits && a.lock.kind.queues()
	answer, left, err := await(c, a.patience, a.ask, func(answer grant, err error) {
		heldByOther := err == nil && answer.holder != nil && !queued
		refused := err != nil && !answer.taken && lua.ClassOf(err) != lua.Unknown
		if err == nil && answer.holder != nil {
			held = answer.holder.TTL
		}
		if !heldByOther && (doubt || !refused) {
			c.janitor.add(a.leftover(held))
		}
	})
	switch {
	case left:
		switch {
		case a.answered:
		case a.failure == nil:
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
		a.answered, a.holder, a.failure, a.doubt = true, *answer.holder, nil, queued
		return nil, false, nil
	}
	deadline := watchdog.Deadline(a.sent, a.bid.lease)
	if !time.Now().Before(deadline) {
		a.failure = fmt.Errorf("the lock was taken, but the answer took longer than the lease of %v", a.bid.lease)
		a.doubt = true
		return nil, false, nil
	}
	hold = a.begin(deadline, answer.fence)
	select {
	case <-a.patience.closing:
		// Too late for Close to know of it: nobody would renew it or end its context.
		hold.tenure.(*holding).forget()
		a.doubt = true
		return nil, false, ErrClosed
	default:
		return hold, false, nil
	}
}

// begin makes the holding of a lock that was acquired.
func (a *attempt) begin(deadline time.Time, fence int64) *Hold {
	c := a.client
	h := &holding{client: c, lock: a.lock, seat: a.seat, token: a.token, owner: a.bid.owner, fence: fence}
	level := h.begin(a.ctx, deadline, a.renew)
	a.seat.settle() // the owner may have ceased to write meanwhile
	return level
}

// reenter adds a level to what the owner holds.
func (a *attempt) reenter(h *holding) (*Hold, error) {
	deadline, err := a.lengthen(h, h.depth()+1)
	if err != nil {
		return nil, err
	}
	return h.push(a.ctx, deadline, a.renew)
}

// lengthen makes Redis keep what the owner holds, with as many levels, for as long as the attempt wants it, and returns
// until when that can be trusted.
func (a *attempt) lengthen(h *holding, levels int) (deadline time.Time, err error) {
	c, lock, owner, lease := a.client, a.lock, h.owner, a.bid.lease
	var delay backoff
	// A count too high does no harm, because the last release ignores it. A lease that nobody wants any more does.
	settle := func(held bool, err error) {
		if (held || err != nil) && h.lostError() != nil {
			c.janitor.add(h.leftover())
		}
	}
	for {
		h.mayLast(lease)
		sent := time.Now()
		held, left, err := await(c, a.patience,
			func() (bool, error) {
				return lock.kind.reenter(c.redis, owner, levels, lease)
			}, settle)
		if left {
			a.failure = errNoAnswer
			return time.Time{}, a.ended()
		}
		settle(held, err)
		switch {
		case err == nil && !held:
			h.lost(watchdog.ErrGone)
			return time.Time{}, h.why()
		case err == nil:
			return watchdog.Deadline(sent, lease), nil
		}
		a.failure = err
		if c.hopeless(err) || !a.bid.waits || !a.patience.sleep(delay.next(), nil) {
			return time.Time{}, a.unavailable()
		}
	}
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
