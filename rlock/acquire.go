package rlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"holdfast/lua"
	"holdfast/watchdog"
)

// longestPark is how long a waiter sleeps at most before it looks by itself. It bounds the harm of a wake-up that never
// comes: an ACL that forbids the channel, a message lost with a failover.
const longestPark = 5 * time.Second

// attempt is one caller's way to a lock. It is used by one goroutine.
type attempt struct {
	client   *Client
	lock     *Lock
	ctx      context.Context
	patience *patience
	wait     bool // more than one try
	lease    time.Duration
	renew    bool
	token    uint64 // of the owner, in this process
	owner    string // of this acquisition, in Redis
	seat     *seat

	// What the tries so far left behind.
	answered bool       // one of them got an answer
	holder   lua.Holder // the last answer: who is in the way
	sent     time.Time  // when the last try was sent
	failure  error      // why the last try got no answer; nil if it did
	doubt    bool       // one of them may have taken the lock without our knowing
}

// run gets the lock, or tells why not. It waits for its turn at the owner's seat first: while another call of the same
// owner talks to Redis about this lock, this one must not.
func (a *attempt) run() (*Hold, error) {
	if a.patience.reason() != nil {
		return nil, a.ended()
	}
	a.seat = a.client.seats.enter(place{a.lock.name, a.token})
	defer a.seat.leave()
	if !a.seat.claim(a.patience) {
		return nil, a.ended()
	}
	defer a.seat.pass()
	if h := a.seat.held(); h != nil {
		hold, err := a.reenter(h)
		if !errors.Is(err, ErrReleased) || a.patience.reason() != nil {
			return hold, err
		}
		// Another goroutine of this owner released the lock meanwhile without getting a turn. This one is the first again.
		a.failure = nil
	}
	if a.wait {
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
	spot := a.client.lines.join(a.lock)
	look, ok := spot.advance(a.patience)
	if !ok {
		return nil, a.leave(spot)
	}
	var delay backoff
	for {
		if look {
			hold, left, err := a.try()
			switch {
			case hold != nil:
				spot.line.answered(lua.Holder{Owner: hold.Owner(), TTL: a.lease})
				spot.leave(false)
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
				spot.line.answered(a.holder)
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
		a.client.janitor.add(a.leftover())
	}
}

// leftover is what a try may have left in Redis. Its lease counts from now, not from when the try was sent: a server that
// hung executes what it finds in its buffers when it goes on.
func (a *attempt) leftover() leftover {
	return leftover{lock: a.lock, owner: a.owner, until: time.Now().Add(a.lease)}
}

// try asks Redis once. Without a hold and an error it may be tried again; failure says whether there was an answer. With
// left = true patience ended before the answer came, which is looked after then.
func (a *attempt) try() (hold *Hold, left bool, err error) {
	a.sent = time.Now()
	c, lock, owner, lease, doubt := a.client, a.lock, a.owner, a.lease, a.doubt
	holder, left, err := await(c, a.patience,
		func() (*lua.Holder, error) {
			if err := c.wire.ready(context.Background()); err != nil {
				return nil, err
			}
			return lua.Acquire(context.Background(), c.redis, lock.name, owner, 1, lease)
		},
		func(holder *lua.Holder, err error) {
			heldByOther := err == nil && holder != nil
			refused := err != nil && lua.ClassOf(err) != lua.Unknown
			if !heldByOther && (doubt || !refused) {
				c.janitor.add(a.leftover())
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
	case err != nil:
		a.failure = err
		a.doubt = a.doubt || lua.ClassOf(err) == lua.Unknown
		if c.hopeless(err) {
			return nil, false, a.unavailable()
		}
		return nil, false, nil
	case holder != nil:
		a.answered, a.holder, a.failure, a.doubt = true, *holder, nil, false
		return nil, false, nil
	}
	deadline := watchdog.Deadline(a.sent, lease)
	if !time.Now().Before(deadline) {
		a.failure = fmt.Errorf("the lock was taken, but the answer took longer than the lease of %v", lease)
		a.doubt = true
		return nil, false, nil
	}
	hold = a.begin(deadline)
	select {
	case <-a.patience.closing:
		// Too late for Close to know of it: nobody would renew it or end its context.
		hold.holding.forget()
		a.doubt = true
		return nil, false, ErrClosed
	default:
		return hold, false, nil
	}
}

// begin makes the holding of a lock that was acquired.
func (a *attempt) begin(deadline time.Time) *Hold {
	c := a.client
	h := &holding{client: c, lock: a.lock, seat: a.seat, token: a.token, owner: a.owner}
	level := &Hold{holding: h, parent: a.ctx, renew: a.renew}
	h.levels = []*Hold{level}
	if a.renew {
		h.mayLast(a.lease)
	}
	h.lease.Group = c.wire.node(a.lock.name)
	h.lease.Value = h
	h.lease.OnLost = h.lost
	a.seat.hold(h)
	c.watchdog.Add(&h.lease, deadline, a.renew)
	return level
}

// reenter adds a level to what the owner holds.
func (a *attempt) reenter(h *holding) (*Hold, error) {
	c, lock, owner, lease := a.client, a.lock, h.owner, a.lease
	var delay backoff
	// A count too high does no harm, because the last release ignores it. A lease that nobody wants any more does.
	settle := func(held bool, err error) {
		if (held || err != nil) && h.lostError() != nil {
			c.janitor.add(h.leftover())
		}
	}
	for {
		h.mayLast(lease)
		sent, count := time.Now(), h.depth()+1
		held, left, err := await(c, a.patience,
			func() (bool, error) {
				return lua.Reenter(context.Background(), c.redis, lock.name, owner, count, lease)
			}, settle)
		if left {
			a.failure = errNoAnswer
			return nil, a.ended()
		}
		settle(held, err)
		if err == nil {
			if !held {
				h.lost(watchdog.ErrGone)
			}
			return h.push(a.ctx, watchdog.Deadline(sent, lease), a.renew)
		}
		a.failure = err
		if c.hopeless(err) || !a.wait || !a.patience.sleep(delay.next(), nil) {
			return nil, a.unavailable()
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
		return &HeldError{Lock: a.lock.name, Owner: a.holder.Owner, TTL: a.holder.TTL, cause: reason}
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
