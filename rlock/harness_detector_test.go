//go:build redis

package rlock_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"holdfast/rlock"
)

// detector knows which owners believe that they hold which lock.
type detector struct {
	mu    sync.Mutex
	holds map[string]map[*rlock.Hold]kind // guarded by mu; by the name of the lock
	// guarded by mu; the one with the largest token, by fenced lock
	latest map[string]*rlock.Hold
}

func newDetector() *detector {
	return &detector{
		holds:  make(map[string]map[*rlock.Hold]kind),
		latest: make(map[string]*rlock.Hold),
	}
}

func (dt *detector) enter(t *testing.T, k kind, hold *rlock.Hold) {
	dt.mu.Lock()
	defer dt.mu.Unlock()
	if dt.holds[hold.Name()] == nil {
		dt.holds[hold.Name()] = make(map[*rlock.Hold]kind)
	}
	dt.holds[hold.Name()][hold] = k
	dt.check(t)
	if !k.fenced {
		return
	}
	// Another owner has had the largest token: a hold of that owner that is still valid came later.
	latest := dt.latest[hold.Name()]
	if latest == nil || hold.Token() > latest.Token() {
		dt.latest[hold.Name()] = hold
	} else if hold.Owner() != latest.Owner() && hold.Valid() {
		t.Errorf("%s got the token %d after %d", hold.Owner(), hold.Token(), latest.Token())
	}
}

func (dt *detector) leave(hold *rlock.Hold) {
	dt.mu.Lock()
	defer dt.mu.Unlock()
	delete(dt.holds[hold.Name()], hold)
}

// watch checks again and again, because a hold may also become valid for longer.
func (dt *detector) watch(ctx context.Context, t *testing.T) {
	for ctx.Err() == nil {
		dt.mu.Lock()
		dt.check(t)
		dt.mu.Unlock()
		pause(ctx.Done(), time.Millisecond)
	}
}

// check requires that all valid holds of a lock belong to one owner, or to readers. A hold that was
// valid is asked again after all others: if it still is, it was valid all the time.
func (dt *detector) check(t *testing.T) {
	for name, holds := range dt.holds {
		var valid []*rlock.Hold
		for hold := range holds {
			if hold.Valid() {
				valid = append(valid, hold)
			}
		}
		owners, exclusive := make(map[string]time.Time), false
		for _, hold := range valid {
			if hold.Valid() {
				owners[hold.Owner()] = hold.Deadline()
				exclusive = exclusive || !holds[hold].shared
			}
		}
		if len(owners) > 1 && exclusive {
			t.Errorf("%s is held by %s at the same time", name, fmt.Sprint(owners))
		}
	}
}
