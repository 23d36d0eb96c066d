package redlock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// patience is how long a caller is willing to wait: until its context ends or its time is over. Its timer is stopped with
// stop.
type patience struct {
	ctx   context.Context
	until time.Time     // when its time, or its context's, is over; zero without a limit
	timer *time.Timer   // nil without a limit
	over  chan struct{} // closed by timer; nil without a limit
}

// unlimited is the limit of a wait that only its context ends.
const unlimited time.Duration = -1

func newPatience(ctx context.Context, limit time.Duration) *patience {
	p := &patience{ctx: ctx}
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

func (p *patience) stop() {
	if p.timer != nil {
		p.timer.Stop()
	}
}

// ended tells whether there is no more time.
func (p *patience) ended() bool {
	select {
	case <-p.over:
		return true
	default:
		return p.ctx.Err() != nil
	}
}

// reason is the context's error with its cause, if that ended the wait, and not the time.
func (p *patience) reason() error {
	err := p.ctx.Err()
	if err == nil {
		return nil
	}
	if cause := context.Cause(p.ctx); !errors.Is(cause, err) {
		return fmt.Errorf("%w: %w", err, cause)
	}
	return context.Cause(p.ctx)
}

// because is err, with the reason why the wait ended if there is one.
func (p *patience) because(err error) error {
	if reason := p.reason(); reason != nil {
		return fmt.Errorf("%w: %w", reason, err)
	}
	return err
}

// sleep waits for d, and returns false if p ended before.
func (p *patience) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-p.over:
	case <-p.ctx.Done():
	}
	return false
}

// backoff is the delay between rounds that fail for no other's unlocking: random, so that those who failed together do not
// try again together, longer than a round, and twice as long each time.
type backoff struct{ failures int }

func (b *backoff) next(round time.Duration) time.Duration {
	const shortest, longest = time.Millisecond, time.Second
	d := max(round, shortest) << min(b.failures, 16)
	b.failures++
	d = min(d, longest)
	return d + rand.N(d)
}
