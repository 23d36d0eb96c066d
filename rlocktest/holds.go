package rlocktest

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"holdfast/rlock"
)

// holds knows the holds of the observed clients that have not ended, and what was wrong with those
// that have.
type holds struct {
	mu     sync.Mutex
	live   map[*rlock.Hold]*acquired // guarded by mu
	orders orders                    // guarded by mu
	// deadlocks has the texts of calls that were refused with ErrDeadlock; guarded by mu.
	deadlocks []string
	besides   []beside         // guarded by mu
	kinds     map[string]*used // guarded by mu; by the names of locks
	count     int              // guarded by mu; how many there have been
}

// acquired says where a hold was acquired.
type acquired struct {
	hold      *rlock.Hold
	number    int // of the holds of this test, in their order
	goroutine string
	creator   string             // the goroutine that has started this one; "" if not known
	site      string             // of the caller; "" if not known
	lost      bool               // it has ended, but was not released
	inside    map[*acquired]bool // the sections of its owner that it is inside of
}

func newHolds() *holds {
	return &holds{live: make(map[*rlock.Hold]*acquired), orders: make(orders),
		kinds: make(map[string]*used)}
}

// began records a hold. The goroutine that has acquired it calls this.
func (hs *holds) began(h *rlock.Hold) {
	a := &acquired{hold: h, site: callSite()}
	a.goroutine, a.creator = goroutines()
	hs.mu.Lock()
	hs.count++
	a.number = hs.count
	var outer []*acquired
	nested := false
	for _, other := range hs.live {
		nested = nested || other.hold.Owner() == h.Owner() // it did not wait
		if other.goroutine == a.goroutine {
			outer = append(outer, other)
		}
	}
	for _, o := range outer {
		if !nested {
			hs.orders.add(step{o.hold.Name(), h.Name(), o.site, a.site})
		}
	}
	hs.enter(a)
	hs.use(a)
	hs.live[h] = a
	hs.mu.Unlock()
	onEnd(h, func(reason error) {
		hs.mu.Lock()
		defer hs.mu.Unlock()
		delete(hs.live, h)
		a.lost = errors.Is(reason, rlock.ErrLost)
		hs.leave(a, reason)
	})
}

// all returns the holds that have not ended, the oldest first.
func (hs *holds) all() []*rlock.Hold {
	var all []*rlock.Hold
	for _, a := range hs.unended() {
		all = append(all, a.hold)
	}
	return all
}

// unended is all with where they were acquired.
func (hs *holds) unended() []*acquired {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	all := make([]*acquired, 0, len(hs.live))
	for _, a := range hs.live {
		all = append(all, a)
	}
	slices.SortFunc(all, byNumber)
	return all
}

func byNumber(a, b *acquired) int { return cmp.Compare(a.number, b.number) }

// isLost reports whether a hold has ended without a release.
func (hs *holds) isLost(a *acquired) bool {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	return a.lost
}

// callSite returns where the program under test has called this module, and where that function was
// called: one that wraps the locks of a program has the same line for all of them.
func callSite() (site string) {
	var pcs [32]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	for {
		frame, more := frames.Next()
		ours := slices.ContainsFunc(packages, func(p string) bool {
			return strings.HasPrefix(frame.Function, p)
		})
		switch line := fmt.Sprintf("%s:%d", frame.File, frame.Line); {
		case ours || frame.File == "":
		case site == "":
			site = line
		case strings.HasPrefix(frame.Function, "testing."):
			return site
		default:
			return site + ", called at " + line
		}
		if !more {
			return site
		}
	}
}

// packages has the beginnings of the names of functions that call each other to acquire a lock.
var packages = []string{
	"holdfast/rlock.", "holdfast/multilock.", "holdfast/redlock.", "holdfast/internal/",
	"holdfast/rlocktest.", "runtime.",
}
