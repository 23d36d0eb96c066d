package rlock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// patience is how long a caller is willing to wait: until its context ends, its time is over, or the client closes.
// It belongs to one goroutine. What it costs when somebody does wait is ended with stop.
type patience struct {
	ctx     context.Context
	closing <-chan struct{}
	until   time.Time   // when its time, or its context's, is over; zero without a limit
	end     time.Time   // when its own time is over; zero without a limit
	timer   *time.Timer // nil until somebody waits, and without a limit
}

// patience of a caller that waits as long as ctx allows, and no longer than limit unless that is unlimited.
func (c *Client) patience(ctx context.Context, limit time.Duration) *patience {
	p := new(patience)
	p.begin(ctx, c.closing, limit)
	return p
}

// begin is [Client.patience] without garbage.
func (p *patience) begin(ctx context.Context, closing <-chan struct{}, limit time.Duration) {
	p.ctx, p.closing = ctx, closing
	p.until, _ = ctx.Deadline()
	if limit != unlimited {
		p.end = time.Now().Add(limit)
		if p.until.IsZero() || p.end.Before(p.until) {
			p.until = p.end
		}
	}
}

// unlimited is the limit of a wait that only its context ends.
const unlimited time.Duration = -1

func (p *patience) stop() {
	if p.timer != nil {
		p.timer.Stop()
	}
}

// timeout fires when the time is over, however often that is noticed; never without a limit.
func (p *patience) timeout() <-chan time.Time {
	switch {
	case p.end.IsZero():
		return nil
	case p.timer == nil:
		p.timer = time.NewTimer(time.Until(p.end))
	case !time.Now().Before(p.end):
		return ended // whoever noticed it before has taken the timer's value
	}
	return p.timer.C
}

// ended fires always.
var ended = func() <-chan time.Time {
	c := make(chan time.Time)
	close(c)
	return c
}()

// reason is why the wait ended, if something other than its time ended it: the context's error with its cause, or
// [ErrClosed].
func (p *patience) reason() error {
	if err := p.ctx.Err(); err != nil {
		cause := context.Cause(p.ctx)
		if errors.Is(cause, err) {
			return cause
		}
		return fmt.Errorf("%w: %w", err, cause)
	}
	select {
	case <-p.closing:
		return ErrClosed
	default:
		return nil
	}
}

// sleep waits for d or for wake, whichever comes first, and returns false if patience ended before.
func (p *patience) sleep(d time.Duration, wake <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-wake:
		return true
	case <-timer.C:
		return true
	case <-p.timeout():
	case <-p.ctx.Done():
	case <-p.closing:
	}
	return false
}

// await runs op, which cannot be cancelled, for as long as p allows. If p ends first it returns left = true at once, op
// runs on in the background, and late gets its outcome; else late is not called.
//
// Cancelling op instead would not do. rueidis closes the connection of a command whose deadline passes while it is alone on
// that, which is right for a server that hangs (see flights) and wrong for a caller in a hurry; and it makes everybody wait
// for a dial that the first caller began under its own context.
func await[T any](c *Client, p *patience, op func() (T, error), late func(T, error)) (value T, left bool, err error) {
	type outcome struct {
		value T
		err   error
	}
	answer := make(chan outcome, 1)
	var decided atomic.Bool // by whoever comes first: the answer, or the caller's leaving
	started := c.tasks.start(func() {
		sent := time.Now()
		value, err := op()
		c.flights.land(sent, err)
		err = unexplained(err)
		if decided.CompareAndSwap(false, true) {
			answer <- outcome{value, err}
		} else {
			late(value, err)
		}
	})
	if !started { // the client is closed, and nothing may outlive it
		value, err = op()
		return value, false, err
	}
	select {
	case o := <-answer:
		return o.value, false, o.err
	case <-p.timeout():
	case <-p.ctx.Done():
	case <-p.closing:
	}
	if decided.CompareAndSwap(false, true) {
		return value, true, nil
	}
	o := <-answer
	return o.value, false, o.err
}

// backoff is the delay between attempts that fail: it doubles from 10 ms to 1 s, and is drawn from its upper half so that
// those who failed together do not try again together.
type backoff struct{ delay time.Duration }

func (b *backoff) next() time.Duration {
	const first, longest = 10 * time.Millisecond, time.Second
	b.delay = min(max(2*b.delay, first), longest)
	return b.delay/2 + rand.N(b.delay/2)
}
