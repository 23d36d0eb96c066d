// Package wait provides the tools of callers that wait: a [Budget] of time, a [Backoff] between
// tries, a [Group] of tasks that a closing client waits for, and a [Pool] of workers for calls that
// may hang. Packages rlock, multilock and redlock use it; it knows neither locks nor Redis.
package wait

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"
)

// Unlimited means that there is no limit: of a pause, or of a wait.
const Unlimited time.Duration = math.MaxInt64

// Fire sends to a channel of capacity 1, and reports whether nothing was pending.
func Fire(signal chan<- struct{}) bool {
	select {
	case signal <- struct{}{}:
		return true
	default:
		return false
	}
}

// Fired receives from a channel without blocking, and reports whether it has fired or is closed.
func Fired(signal <-chan struct{}) bool {
	select {
	case <-signal:
		return true
	default:
		return false
	}
}

// ErrClosed is the reason why a budget ended if its client was closed.
var ErrClosed = errors.New("lock client closed")

// Budget limits how long a caller waits: until its context ends, its time is over, or its client
// closes. Nobody has to stop it: its timer costs nothing once nobody waits for that. One goroutine
// at a time may use it.
type Budget struct {
	Ctx   context.Context
	Until time.Time // the earlier of its own end and the context's deadline; zero without either

	closing <-chan struct{} // closed when the client closes, if that ends the budget; else nil
	end     time.Time       // of its own time; zero without a limit
	timer   *time.Timer     // nil until somebody waits for a time
}

// NewBudget returns a budget that ends with ctx, when closing is closed, or after limit, unless
// that is [Unlimited]. A nil closing is never closed.
func NewBudget(ctx context.Context, closing <-chan struct{}, limit time.Duration) *Budget {
	return new(Budget).Begin(ctx, closing, limit)
}

// Begin does what [NewBudget] does, for a Budget that is part of another value. It returns b.
func (b *Budget) Begin(ctx context.Context, closing <-chan struct{}, limit time.Duration) *Budget {
	b.Ctx, b.closing = ctx, closing
	b.Until, _ = ctx.Deadline()
	if limit != Unlimited {
		b.end = time.Now().Add(limit)
		if b.Until.IsZero() || b.end.Before(b.Until) {
			b.Until = b.end
		}
	}
	return b
}

// Err returns why the budget ended, unless its own time did: the context's error with its cause, or
// [ErrClosed]; nil if it has not ended.
func (b *Budget) Err() error {
	err := b.Ctx.Err()
	if at, ok := b.Ctx.Deadline(); err == nil && ok && time.Until(at) <= 0 {
		err = context.DeadlineExceeded // the context's timer is late
	}
	if err != nil {
		cause := cmp.Or(context.Cause(b.Ctx), err)
		if errors.Is(cause, err) {
			return cause
		}
		return fmt.Errorf("%w: %w", err, cause)
	}
	if b.Closing() {
		return ErrClosed
	}
	return nil
}

// Because returns err, wrapped together with the reason why the budget ended if there is one.
func (b *Budget) Because(err error) error {
	if reason := b.Err(); reason != nil {
		return fmt.Errorf("%w: %w", reason, err)
	}
	return err
}

// Over reports whether the budget has ended, for whatever reason.
func (b *Budget) Over() bool {
	return b.Err() != nil || !b.end.IsZero() && time.Until(b.end) <= 0
}

// Closing reports whether the client has begun to close.
func (b *Budget) Closing() bool { return Fired(b.closing) }

// Left returns d, or what is left of the budget's own time if that is less.
func (b *Budget) Left(d time.Duration) time.Duration {
	if b.end.IsZero() {
		return d
	}
	return min(d, max(0, time.Until(b.end)))
}

// Wait blocks until wake fires. It returns false if the budget ended first.
func (b *Budget) Wait(wake <-chan struct{}) bool { return b.Sleep(Unlimited, wake, nil) }

// Sleep blocks for d, or until one of the channels fires; either may be nil. It returns false if
// the budget ended first. If wake has fired before the call, it returns true at once.
func (b *Budget) Sleep(d time.Duration, wake, also <-chan struct{}) bool {
	if Fired(wake) {
		return true
	}
	var elapsed <-chan time.Time
	pause := b.Left(d)
	if pause != Unlimited {
		if b.timer == nil {
			b.timer = time.NewTimer(pause)
		} else {
			b.timer.Reset(pause) // also drops a value that was not received
		}
		elapsed = b.timer.C
	}
	select {
	case <-wake:
		return true
	case <-also:
		return true
	case <-elapsed:
		return pause == d
	case <-b.Ctx.Done():
		return false
	case <-b.closing:
		return false
	}
}
