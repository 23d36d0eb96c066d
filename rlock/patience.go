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
// It belongs to one goroutine. Its timer is stopped with stop.
type patience struct {
	ctx     context.Context
	closing <-chan struct{}
	until   time.Time     // when its time, or its context's, is over; zero without a limit
	timer   *time.Timer   // nil without a limit
	over    chan struct{} // closed by timer, so that the time stays over however often that is noticed; nil without a limit
}

// patience of a caller that waits as long as ctx allows, and no longer than limit unless that is unlimited.
func (c *Client) patience(ctx context.Context, limit time.Duration) *patience {
	p := &patience{ctx: ctx, closing: c.closing}
	p.until, _ = ctx.Deadline()
	if limit != unlimited {
		over := make(chan struct{})
		p.over = over
		if end := time.Now().Add(limit); p.until.IsZero() || end.Before(p.until) {
			p.until = end
		}
		p.timer = time.AfterFunc(limit, func() { close(over) })
	}
	return p
}

// unlimited is the limit of a wait that only its context ends.
const unlimited time.Duration = -1

func (p *patience) stop() {
	if p.timer != nil {
		p.timer.Stop()
	}
}

// timeout is closed when the time is over; never without a limit.
func (p *patience) timeout() <-chan struct{} { return p.over }

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
// Cancelling op instead would not do. rueidis closes a connection that others share when the deadline of one command
// passes, and it makes everybody wait for a dial that the first caller began under its own context.
func await[T any](c *Client, p *patience, op func() (T, error), late func(T, error)) (value T, left bool, err error) {
	type outcome struct {
		value T
		err   error
	}
	answer := make(chan outcome, 1)
	var decided atomic.Bool // by whoever comes first: the answer, or the caller's leaving
	started := c.tasks.start(func() {
		value, err := op()
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
