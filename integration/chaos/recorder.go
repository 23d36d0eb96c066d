package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"

	"holdfast/integration/history"
	"holdfast/rlock"
)

// recorder writes what a process does, one line each. It writes each line at once, so that nothing
// is lost when the process is killed.
type recorder struct {
	process string

	mu     sync.Mutex
	lines  *json.Encoder // guarded by mu
	number int           // guarded by mu; of the last acquisition
}

func newRecorder(process string, w io.Writer) *recorder {
	return &recorder{process: process, lines: json.NewEncoder(w)}
}

// write writes an event. The runner reads to the end, so the pipe is open.
func (r *recorder) write(e history.Event) {
	e.Process = r.process
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.lines.Encode(e); err != nil {
		panic("chaos: the runner is gone: " + err.Error())
	}
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
		_ = hold.Unlock(context.Background()) // returns that the lock is lost
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
	a.recorder.write(history.Event{At: history.Now(), What: history.Lost, Number: a.number,
		Error: a.hold.Err().Error()})
}

// release unlocks, and records the outcome.
func (a *attempt) release(unlock func() error) {
	a.recorder.write(history.Event{At: history.Now(), What: history.Releasing, Number: a.number})
	err := unlock()
	e := history.Event{At: history.Now(), What: history.Released, Number: a.number}
	if err != nil {
		e.What, e.Error = history.Unconfirmed, err.Error()
		if errors.Is(err, rlock.ErrLost) || errors.Is(err, rlock.ErrNotHeld) {
			e.What = history.NotHeld
		}
	}
	a.recorder.write(e)
}
