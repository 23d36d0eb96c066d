package rlock

import (
	"context"
	"fmt"
	"sync"
)

// AsSyncLocker adapts lock to [sync.Locker], for code that knows only that interface. Each Lock
// waits until ctx ends and acquires the lock for lease; Unlock releases it.
//
// The interface has no room for errors, so this is a last resort. Lock panics if the lock cannot be
// acquired, because continuing without it would be worse. Unlock panics if nothing is locked. A
// loss of the lock is only logged. Like a sync.Mutex, the adapter does not re-enter, and may be
// unlocked by another goroutine than the one that locked it.
func AsSyncLocker(ctx context.Context, lock Locker, lease Lease) sync.Locker {
	return &syncLocker{ctx: ctx, lock: lock, lease: lease}
}

type syncLocker struct {
	ctx   context.Context
	lock  Locker
	lease Lease
	mu    sync.Mutex
	holds []*Hold // not unlocked yet, oldest first: it may be lost; guarded by mu
}

func (sl *syncLocker) Lock() {
	// Each Lock has a new owner: a second one must wait, not re-enter.
	hold, err := sl.lock.Lock(WithOwner(sl.ctx), sl.lease)
	if err != nil {
		panic(err)
	}
	sl.mu.Lock()
	defer sl.mu.Unlock()
	sl.holds = append(sl.holds, hold)
}

func (sl *syncLocker) Unlock() {
	sl.mu.Lock()
	holds := sl.holds
	sl.holds = holds[min(1, len(holds)):] // a lost hold must not release the lock of the next
	sl.mu.Unlock()
	if len(holds) == 0 {
		panic(fmt.Sprintf("holdfast: Unlock of an unlocked sync.Locker for %q", sl.lock.Name()))
	}
	// The error has nowhere to go: the hold is over either way, and a loss has been logged.
	_ = holds[0].Unlock()
}
