package rlock

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// AsSyncLocker adapts lock to [sync.Locker], for code that knows only that interface. Each Lock
// waits until ctx ends and acquires the lock for lease; Unlock releases it.
//
// The interface has no room for errors, so this is a last resort. Lock panics if the lock cannot be
// acquired, because continuing without it would be worse. Unlock panics if nothing is locked. A
// loss of the lock is only logged. Like a sync.Mutex, the adapter does not re-enter, and may be
// unlocked by another goroutine than the one that locked it.
func AsSyncLocker(ctx context.Context, lock Locker, lease time.Duration) sync.Locker {
	return &syncLocker{ctx: ctx, lock: lock, lease: lease}
}

type syncLocker struct {
	ctx   context.Context
	lock  Locker
	lease time.Duration
	hold  atomic.Pointer[Hold] // nil while not locked
}

func (sl *syncLocker) Lock() {
	// Each Lock has a new owner: a second one must wait, not re-enter.
	hold, err := sl.lock.Lock(WithOwner(sl.ctx), sl.lease)
	if err != nil {
		panic(err)
	}
	sl.hold.Store(hold)
}

func (sl *syncLocker) Unlock() {
	hold := sl.hold.Swap(nil)
	if hold == nil {
		panic(fmt.Sprintf("holdfast: Unlock of an unlocked sync.Locker for %q", sl.lock.Name()))
	}
	// The error has nowhere to go: the hold is over either way, and a loss has been logged.
	_ = hold.Unlock(sl.ctx)
}
