package rlocktest

import (
	"context"
	"errors"
	"slices"

	"holdfast/rlock"
)

// refusals is a tracer that records the calls that did not get their lock: what a goroutine waited
// for in vain says as much about its order of locks as what it got.
type refusals struct{ holds *holds }

// inMultiLock marks the contexts of the parts of a MultiLock. Their refusals are not recorded: all
// MultiLocks take their parts in one order, so the parts form no circle among themselves. A circle
// of a refused MultiLock with a lock that its caller holds is not found.
type inMultiLock struct{}

// AcquireStart implements [rlock.Tracer].
func (r refusals) AcquireStart(ctx context.Context, d rlock.AcquireStart) context.Context {
	if d.Lock.Kind == "multilock" {
		return context.WithValue(ctx, inMultiLock{}, true)
	}
	return ctx
}

// AcquireEnd implements [rlock.Tracer].
func (r refusals) AcquireEnd(ctx context.Context, d rlock.AcquireEnd) {
	whole := d.Lock.Kind == "multilock"
	if !errors.Is(d.Err, rlock.ErrNotAcquired) || !whole && ctx.Value(inMultiLock{}) != nil {
		return
	}
	site := callSite()
	goroutine, _ := goroutines()
	r.holds.mu.Lock()
	defer r.holds.mu.Unlock()
	if errors.Is(d.Err, rlock.ErrDeadlock) {
		r.holds.deadlocks = append(r.holds.deadlocks, d.Err.Error()+at(site))
	}
	if whole {
		return
	}
	for _, other := range r.holds.live {
		if other.goroutine == goroutine {
			r.holds.orders.add(step{other.hold.Name(), d.Lock.Name, other.site, site})
		}
	}
}

// contradictions returns what is wrong with the orders of locks: circles or, without any, the calls
// that were refused because callers waited for each other, or would have waited for themselves.
func (hs *holds) contradictions() []string {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	var found []string
	for _, circle := range hs.orders.circles() {
		found = append(found, "locks were acquired in opposite orders: "+circle+
			"; acquire them in one order everywhere, or together with multilock")
	}
	if len(found) > 0 {
		return found
	}
	slices.Sort(hs.deadlocks)
	for _, text := range slices.Compact(hs.deadlocks) {
		if len(found) == mostCircles {
			break
		}
		found = append(found, "a call returned an error: "+text)
	}
	return found
}
