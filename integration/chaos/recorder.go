package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/integration/history"
	"holdfast/internal/locktest"
	"holdfast/rlock"
)

// recorder tells the runner what a process does.
type recorder struct {
	process string
	pairs   *locktest.Pairs // told of each Unlock, if there are any
	// closed is set before the clients are closed in the midst. That ends holds, which is no loss.
	closed atomic.Bool

	mu     sync.Mutex
	tell   func(history.Event) // guarded by mu
	number int                 // guarded by mu; of the last acquisition
}

// newRecorder returns a recorder of a process of its own. It writes each event at once, as a line,
// so that nothing is lost when the process is killed.
func newRecorder(process string, w io.Writer) *recorder {
	lines := json.NewEncoder(w)
	return &recorder{process: process, tell: func(e history.Event) {
		if err := lines.Encode(e); err != nil { // the runner reads to the end
			panic("chaos: the runner is gone: " + err.Error())
		}
	}}
}

// watchStandstills records when this process stands still, until ctx ends. Nobody else notices,
// unless the runner stands still as well.
func (r *recorder) watchStandstills(ctx context.Context) {
	last := history.Now()
	each(ctx, 5*time.Millisecond, func() {
		now := history.Now()
		if now.Sub(last) > longestStandstill {
			r.write(history.Event{At: last, What: history.Stopped})
			r.write(history.Event{At: now, What: history.Resumed})
		}
		last = now
	})
}

// write tells of an event.
func (r *recorder) write(e history.Event) {
	e.Process = r.process
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tell(e)
}

// next returns the number of a new acquisition.
func (r *recorder) next() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.number++
	return r.number
}

// attempt is an acquisition of this process.
type attempt struct {
	recorder  *recorder
	number    int
	fixed     bool // its lease is not renewed
	lease     time.Duration
	extended  bool
	over      bool // it was given up
	hold      *rlock.Hold
	nestedCtx context.Context // of levels nested in it
}

// ask records that a lock is asked for.
func (r *recorder) ask(e history.Event) *attempt {
	a := &attempt{recorder: r, number: r.next()}
	e.What, e.Number = history.Asked, a.number
	e.At = history.Now()
	r.write(e)
	return a
}

// answered records what Lock or TryLock returned, and reports whether it was a hold.
func (a *attempt) answered(hold *rlock.Hold, err error) bool {
	e := history.Event{At: history.Now(), Number: a.number}
	switch {
	case err != nil:
		e.What, e.Error = outcome(err), err.Error()
	case !hold.Valid():
		// The process was stopped meanwhile. A hold that was never seen valid proves nothing.
		e.What, e.Error = history.Unknown, "granted, and over at once"
		_ = hold.Unlock() // returns that the lock is lost
	default:
		a.hold = hold
		e.What, e.Owner, e.Token, e.Until = history.Granted, hold.Owner(), hold.Token(),
			history.At(hold.Deadline())
	}
	a.recorder.write(e)
	return a.hold != nil
}

// outcome returns what an error says about an acquisition.
func outcome(err error) history.What {
	var held *rlock.HeldError
	switch {
	case errors.As(err, &held):
		return history.Refused
	case errors.Is(err, rlock.ErrInvalid), errors.Is(err, rlock.ErrUpgrade),
		errors.Is(err, rlock.ErrClosed), errors.Is(err, rlock.ErrNotReplicated):
		return history.Failed
	default:
		return history.Unknown
	}
}

// check records that the hold is valid, if it is.
func (a *attempt) check() {
	at := history.Now() // before Valid: the hold was valid then, or lost before
	if a.hold.Valid() {
		a.recorder.write(history.Event{At: at, What: history.Valid, Number: a.number,
			Until: history.At(a.hold.Deadline())})
	}
}

// lost records that the hold has ended.
func (a *attempt) lost() {
	if a.recorder.closed.Load() {
		return
	}
	a.recorder.write(history.Event{At: history.Now(), What: history.Lost, Number: a.number,
		Error: a.hold.Err().Error()})
}

// release unlocks, and records the outcome.
func (a *attempt) release(unlock func() error) {
	begun := history.Now()
	a.recorder.write(history.Event{At: begun, What: history.Releasing, Number: a.number})
	err := unlock()
	if a.recorder.pairs != nil {
		a.recorder.pairs.Unlocked(a.hold, err)
	}
	e := history.Event{At: history.Now(), What: history.Released, Number: a.number}
	switch {
	case a.recorder.closed.Load(): // that may have released it, and this may take any time
		e.At, e.What = min(e.At, begun.Add(command)), history.Unconfirmed
	case errors.Is(err, rlock.ErrLost), errors.Is(err, rlock.ErrNotHeld):
		e.What, e.Error = history.NotHeld, err.Error()
	case err != nil:
		e.What, e.Error = history.Unconfirmed, err.Error()
	}
	a.recorder.write(e)
}
