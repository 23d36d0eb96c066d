// Package flight lets the callers of a client that ask for the same key of package once share one
// request.
package flight

import (
	"context"
	"sync"

	"holdfast/lua"
)

// Group has the keys that callers of a client ask for at the moment. Of all callers for a key, only
// one at a time asks Redis, runs its function, or waits for the lock. Thousands of waiters in a
// process therefore cost Redis no more than one. The zero Group is ready. It is safe for concurrent
// use.
type Group struct {
	mu    sync.Mutex
	byKey map[string]*Flight // by the name of the lock; guarded by mu
}

// Flight is a key that callers ask for.
type Flight struct {
	callers int           // guarded by Group.mu
	turn    chan struct{} // has a value while a caller has the turn
	landed  chan struct{} // closed once record is set
	record  lua.OnceRecord
}

// Join adds a caller to the flight of a key. The caller must call Leave.
func (f *Group) Join(name string) *Flight {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.byKey == nil {
		f.byKey = make(map[string]*Flight)
	}
	fl := f.byKey[name]
	if fl == nil {
		fl = &Flight{turn: make(chan struct{}, 1), landed: make(chan struct{})}
		f.byKey[name] = fl
	}
	fl.callers++
	return fl
}

// Leave removes a caller.
func (f *Group) Leave(name string, fl *Flight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fl.callers--
	if fl.callers == 0 && f.byKey[name] == fl {
		delete(f.byKey, name)
	}
}

// Land gives all callers of a flight the stored result. Later callers ask Redis again, because the
// lifetime of the result ends.
func (f *Group) Land(name string, fl *Flight, record lua.OnceRecord) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.byKey[name] == fl {
		delete(f.byKey, name)
	}
	fl.record = record
	close(fl.landed)
}

// Wait waits for the turn, in the order of the calls, and returns true. It returns false if ctx
// ends first or, with noWait, if another caller has the turn. If the flight has landed, Wait also
// returns false.
func (fl *Flight) Wait(ctx context.Context, noWait bool) bool {
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
	if fl.HasLanded() {
		fl.Pass()
		return false
	}
	return true
}

// Pass ends the turn of a caller.
func (fl *Flight) Pass() { <-fl.turn }

// HasLanded reports whether the result is there.
func (fl *Flight) HasLanded() bool {
	select {
	case <-fl.landed:
		return true
	default:
		return false
	}
}

// Record returns the result, once the flight has landed.
func (fl *Flight) Record() lua.OnceRecord { return fl.record }
