// Package wait provides tools for callers that wait: a [Budget] of time, a [Backoff] between tries,
// a [Group] of tasks for which a closing client waits, and a [Pool] of workers for calls that may
// hang. The package knows neither locks nor Redis.
package wait

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"
)

// Unlimited is a pause or a wait without a limit.
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

// ErrClosed is the reason for the end of a budget if the client was closed.
var ErrClosed = errors.New("lock client closed")

// Budget limits how long a caller waits. A budget ends when its context ends, its time is over, or
// its client closes. You need not stop a budget, because its timer costs nothing while nobody
// waits. Only one goroutine at a time may use a budget.
type Budget struct {
	Ctx   context.Context
	Until time.Time // the earlier of end and the deadline of Ctx; zero without both

	closing <-chan struct{} // closed when the client closes; nil if closing does not end the budget
	end     time.Time       // of the budget's time; zero without a limit
	timer   *time.Timer     // nil until the first wait with a limit
}

// NewBudget returns a budget that ends with ctx, when closing is closed, or after limit. A limit of
// [Unlimited] has no end, and a nil closing is never closed.
func NewBudget(ctx context.Context, closing <-chan struct{}, limit time.Duration) *Budget {
	return new(Budget).Begin(ctx, closing, limit)
}

// Begin is [NewBudget] for a Budget inside another value. Begin returns b.
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

// Adopt takes the timer of another budget whose caller does not wait any more.
func (b *Budget) Adopt(from *Budget) { b.timer, from.timer = from.timer, nil }

// Err returns the error of the context with its cause, or [ErrClosed], if one of them ended the
// budget. Err returns nil if the budget lasts, or if its time is over.
func (b *Budget) Err() error {
	err := b.Ctx.Err()
	if at, ok := b.Ctx.Deadline(); err == nil && ok && time.Until(at) <= 0 {
		err = context.DeadlineExceeded // the timer of the context is late
	}
	if err != nil {
		cause := cmp.Or(context.Cause(b.Ctx), err)
		if errors.Is(cause, err) {
			return cause
		}
		return fmt.Errorf("%w: %w", err, cause)
	}
	if Fired(b.closing) {
		return ErrClosed
	}
	return nil
}

// Because returns err, wrapped together with the result of Err if that is not nil.
func (b *Budget) Because(err error) error {
	if reason := b.Err(); reason != nil {
		return fmt.Errorf("%w: %w", reason, err)
	}
	return err
}

// Over reports whether the budget has ended, for any reason.
func (b *Budget) Over() bool {
	return b.Err() != nil || !b.end.IsZero() && time.Until(b.end) <= 0
}

// Closing reports whether the client has begun to close.
func (b *Budget) Closing() bool { return Fired(b.closing) }

// Left returns d, or the rest of the budget's time if that is shorter.
func (b *Budget) Left(d time.Duration) time.Duration {
	if b.end.IsZero() {
		return d
	}
	return min(d, max(0, time.Until(b.end)))
}

// Wait blocks until wake fires. Wait returns false if the budget ends first.
func (b *Budget) Wait(wake <-chan struct{}) bool { return b.Sleep(Unlimited, wake, nil) }

// Sleep blocks for d, or until one of the channels fires. Either channel may be nil. Sleep returns
// false if the budget ends first. If wake fired before the call, Sleep returns true at once.
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
			b.timer.Reset(pause) // also drops an unreceived value
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
