package rlock

import (
	"context"
	"errors"
	"math"
	"os"
	"sync/atomic"
	"time"

	"holdfast/lua"
)

// flights are the commands of a client that are under way, as far as that decides how the next one is sent.
//
// A command that is sent from the caller's own goroutine costs least. But no caller can leave it before its time-out, nor
// while rueidis dials a connection. So a command goes the direct way only for callers who would stay that long, and only
// while answers come; never on a cluster, where others may be with another node; and not for a minute after a caller was kept
// longer, by a dial or by a client that heeds no context. Else it has a goroutine of its own.
//
// Nor has a command a deadline of its own there, which costs rueidis ten allocations. Those that begin within a short time
// share a context, which ends when the first of them has been under way for Options.CommandTimeout. With a command that is
// alone on its connection rueidis closes that then. What becomes of a command that was left is not heard of: it is adrift,
// may be executed at any time, and what undoes it may come before it.
type flights struct {
	timeout  time.Duration
	began    time.Time
	grounded atomic.Int64 // until when none goes the direct way, in nanoseconds since began
	answered atomic.Int64 // when the latest command was sent that was answered, in nanoseconds since began
	wave     atomic.Pointer[wave]
}

// wave is a context for all commands that begin before a certain time.
type wave struct {
	context.Context
	until time.Time
}

// fresh is for how long after a command that was answered another may go the direct way.
const fresh = 100 * time.Millisecond

// rest is for how long none goes the direct way after one has kept its caller.
const rest = time.Minute

// newFlights returns those of a new client; grounded ones never go the direct way.
func newFlights(timeout time.Duration, grounded bool) *flights {
	f := &flights{timeout: timeout, began: time.Now()}
	f.answered.Store(int64(-2 * fresh))
	if grounded {
		f.ground(math.MaxInt64)
	}
	return f
}

// ground has none go the direct way until so long after the client was made.
func (f *flights) ground(until time.Duration) { f.grounded.Store(int64(until)) }

// board begins a command. With ok = true it may be sent by the caller, with ctx, which ends within the time-out; land is to be
// called with the outcome then.
func (f *flights) board(p *patience, now time.Time) (ctx context.Context, ok bool) {
	since := now.Sub(f.began)
	if p.ctx.Done() != nil || since-time.Duration(f.answered.Load()) > fresh || since < time.Duration(f.grounded.Load()) {
		return nil, false
	}
	if !p.until.IsZero() && p.until.Sub(now) < f.timeout-10*time.Millisecond {
		return nil, false
	}
	w := f.wave.Load()
	if w == nil || !now.Before(w.until) {
		shared, cancel := context.WithDeadline(context.Background(), now.Add(f.timeout))
		context.AfterFunc(shared, cancel) // it ends by itself, when nobody needs it any more
		w = &wave{Context: shared, until: now.Add(f.timeout / 16)}
		f.wave.Store(w)
	}
	return w, true
}

// land ends a command that was sent at the given time.
func (f *flights) land(sent time.Time, err error) {
	if err == nil || lua.ClassOf(err) != lua.Unknown {
		f.answered.Store(int64(sent.Sub(f.began)))
	} else {
		f.answered.Store(int64(-2 * fresh))
	}
}

// landDirect ends a command that went the direct way, and returns whether it is adrift.
func (f *flights) landDirect(sent time.Time, err error) (adrift bool) {
	f.land(sent, err)
	if now := time.Now(); now.Sub(sent) > f.timeout+f.timeout/4 {
		f.ground(now.Sub(f.began) + rest)
	}
	return err != nil && lua.ClassOf(err) == lua.Unknown && timedOut(err)
}

// unexplained is the error of a command without the deadline of another one, whose end was that of their connection.
func unexplained(err error) error {
	if err != nil && lua.ClassOf(err) == lua.Unknown && errors.Is(err, context.DeadlineExceeded) {
		return errNoAnswer
	}
	return err
}

// timedOut tells that a command was not answered before a deadline: that of its context, or rueidis's own.
func timedOut(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)
}
