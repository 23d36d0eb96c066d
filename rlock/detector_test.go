package rlock_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"holdfast/rlock"
)

// detector knows who believes to hold which lock.
type detector struct {
	mu    sync.Mutex
	holds map[string]map[*rlock.Hold]struct{} // guarded by mu; by the name of the lock
}

func (dt *detector) enter(t *testing.T, hold *rlock.Hold) {
	dt.mu.Lock()
	defer dt.mu.Unlock()
	if dt.holds[hold.Name()] == nil {
		dt.holds[hold.Name()] = make(map[*rlock.Hold]struct{})
	}
	dt.holds[hold.Name()][hold] = struct{}{}
	dt.check(t)
}

func (dt *detector) leave(hold *rlock.Hold) {
	dt.mu.Lock()
	defer dt.mu.Unlock()
	delete(dt.holds[hold.Name()], hold)
}

// watch looks again and again, as a hold may also become valid for longer.
func (dt *detector) watch(ctx context.Context, t *testing.T) {
	for ctx.Err() == nil {
		dt.mu.Lock()
		dt.check(t)
		dt.mu.Unlock()
		pause(ctx.Done(), time.Millisecond)
	}
}

// check requires that of all holds of a lock those that are valid belong to one owner. Each that was valid is asked again
// after all others: if it still is, it was valid all the time.
func (dt *detector) check(t *testing.T) {
	for name, holds := range dt.holds {
		var valid []*rlock.Hold
		for hold := range holds {
			if hold.Valid() {
				valid = append(valid, hold)
			}
		}
		owners := make(map[string]time.Time)
		for _, hold := range valid {
			if hold.Valid() {
				owners[hold.Owner()] = hold.Deadline()
			}
		}
		if len(owners) > 1 {
			t.Errorf("%s is held by %s at the same time", name, fmt.Sprint(owners))
		}
	}
}
