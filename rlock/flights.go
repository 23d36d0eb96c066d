package rlock

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"holdfast/lua"
)

// flights are the commands of a client that are under way, as far as that decides how the next one is sent.
//
// A command that is sent from the caller's own goroutine costs least. But while rueidis dials a connection, or when it has one
// for each caller, no caller can leave. So a command goes the direct way only while others are under way too, and answers
// come; never on a cluster, where others may be with another node; and never again once a caller was kept. Else it has a
// goroutine of its own, which then costs nothing that anybody would notice.
//
// Nor has a command a deadline of its own there, which costs rueidis ten allocations. Those that begin within a short time
// share a context, which ends when the first of them has been under way for Options.CommandTimeout. What becomes of a command
// that was left then is not heard of: it is adrift, may be executed at any time, and what undoes it may come before it.
type flights struct {
	timeout  time.Duration
	began    time.Time
	grounded atomic.Bool // none goes the direct way
	aloft    atomic.Int64
	answered atomic.Int64 // when the latest command was sent that was answered, in nanoseconds since began
	wave     atomic.Pointer[wave]
}

// wave is a context for all commands that begin before a certain time.
type wave struct {
	undated
	until time.Time
}

// undated hides the deadline of a context: with one, rueidis would close the connection.
type undated struct{ context.Context }

// Deadline is none.
func (undated) Deadline() (time.Time, bool) { return time.Time{}, false }

// fresh is for how long after a command that was answered another may go the direct way.
const fresh = 100 * time.Millisecond

func newFlights(timeout time.Duration, grounded bool) *flights {
	f := &flights{timeout: timeout, began: time.Now()}
	f.answered.Store(int64(-2 * fresh))
	f.grounded.Store(grounded)
	return f
}

// board begins a command. With ok = true it may be sent by the caller, with ctx, which ends within the time-out; land is to be
// called with the outcome then.
func (f *flights) board(p *patience, now time.Time) (ctx context.Context, ok bool) {
	if p.ctx.Done() != nil || f.aloft.Load() == 0 || now.Sub(f.began)-time.Duration(f.answered.Load()) > fresh || f.grounded.Load() {
		return nil, false
	}
	if !p.until.IsZero() && p.until.Sub(now) < f.timeout-10*time.Millisecond {
		return nil, false
	}
	f.aloft.Add(1)
	w := f.wave.Load()
	if w == nil || !now.Before(w.until) {
		shared, cancel := context.WithCancel(context.Background())
		time.AfterFunc(f.timeout, cancel)
		w = &wave{undated: undated{shared}, until: now.Add(f.timeout / 16)}
		f.wave.Store(w)
	}
	return w, true
}

// take begins a command that has a goroutine of its own, and returns when that was.
func (f *flights) take() (now time.Time) {
	f.aloft.Add(1)
	return time.Now()
}

// land ends a command that was sent at the given time. It returns true if the command is adrift, supposing that it went the
// direct way.
func (f *flights) land(sent time.Time, err error) (adrift bool) {
	f.aloft.Add(-1)
	if err == nil || lua.ClassOf(err) != lua.Unknown {
		f.answered.Store(int64(sent.Sub(f.began)))
		return false
	}
	f.answered.Store(int64(-2 * fresh))
	if !errors.Is(err, context.Canceled) {
		return false
	}
	if time.Since(sent) > f.timeout+f.timeout/4 {
		f.grounded.Store(true)
	}
	return true
}
