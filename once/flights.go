package once

import (
	"context"
	"sync"

	"holdfast/lua"
	"holdfast/rlock"
)

// flights has the keys that callers of a client ask for at the moment. Of all callers for a key,
// only one at a time asks Redis, runs its function, or waits for the lock. Thousands of waiters in
// a process therefore cost Redis no more than one.
type flights struct {
	mu    sync.Mutex
	byKey map[string]*flight // by the name of the lock; guarded by mu
}

// flight is a key that callers ask for.
type flight struct {
	callers int           // guarded by flights.mu
	turn    chan struct{} // has a value while a caller has the turn
	landed  chan struct{} // closed once record is set
	record  lua.OnceRecord
}

// ofClient returns the flights of a client.
func ofClient(c *rlock.Client) *flights {
	create := func() any { return &flights{byKey: make(map[string]*flight)} }
	return hook.Attached(c, "once", create).(*flights)
}

// join adds a caller to the flight of a key. The caller must call leave.
func (f *flights) join(name string) *flight {
	f.mu.Lock()
	defer f.mu.Unlock()
	fl := f.byKey[name]
	if fl == nil {
		fl = &flight{turn: make(chan struct{}, 1), landed: make(chan struct{})}
		f.byKey[name] = fl
	}
	fl.callers++
	return fl
}

func (f *flights) leave(name string, fl *flight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fl.callers--
	if fl.callers == 0 && f.byKey[name] == fl {
		delete(f.byKey, name)
	}
}

// land gives all callers of a flight the stored result. Later callers ask Redis again, because the
// lifetime of the result ends.
func (f *flights) land(name string, fl *flight, record lua.OnceRecord) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.byKey[name] == fl {
		delete(f.byKey, name)
	}
	fl.record = record
	close(fl.landed)
}

// wait waits for the turn, in the order of the calls, and returns true. It returns false if ctx
// ends first or, with noWait, if another caller has the turn. If the flight has landed, wait also
// returns false.
func (fl *flight) wait(ctx context.Context, noWait bool) bool {
	select {
	case fl.turn <- struct{}{}:
	default:
		if noWait {
			return false
		}
		select {
		case fl.turn <- struct{}{}:
		case <-fl.landed:
			return false
		case <-ctx.Done():
			return false
		}
	}
	if fl.hasLanded() {
		fl.pass()
		return false
	}
	return true
}

// pass ends the turn of a caller.
func (fl *flight) pass() { <-fl.turn }

func (fl *flight) hasLanded() bool {
	select {
	case <-fl.landed:
		return true
	default:
		return false
	}
}
