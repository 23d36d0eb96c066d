package rlock

import (
	"context"
	"sync"
	"time"
)

// AsSyncLocker adapts lock to [sync.Locker], for code that knows only that interface. Each Lock
// waits until ctx ends and takes the lock for lease; Unlock releases what Lock took.
//
// The interface has no place for errors, so this is a last resort: Lock panics if the lock cannot
// be acquired, because going on without it would be worse. Unlock panics when nothing is locked, as
// a sync.Mutex does; that a lock was lost is only told by the hold's log message. Like a
// sync.Mutex, the adapter does not re-enter, and may be unlocked by another goroutine than the one
// that locked it.
func AsSyncLocker(ctx context.Context, lock Locker, lease time.Duration) sync.Locker {
	return &syncLocker{ctx: ctx, lock: lock, lease: lease}
}

type syncLocker struct {
	ctx   context.Context
	lock  Locker
	lease time.Duration

	mu   sync.Mutex
	hold *Hold // guarded by mu; nil while not locked
}

func (sl *syncLocker) Lock() {
	// An owner of its own for each Lock: a second one must wait, not re-enter.
	hold, err := sl.lock.Lock(WithOwner(sl.ctx), sl.lease)
	if err != nil {
		panic(err)
	}
	sl.mu.Lock()
	sl.hold = hold
	sl.mu.Unlock()
}

func (sl *syncLocker) Unlock() {
	sl.mu.Lock()
	hold := sl.hold
	sl.hold = nil
	sl.mu.Unlock()
	if hold == nil {
		panic("holdfast: Unlock of an unlocked sync.Locker for " + sl.lock.Name())
	}
	// Nobody can be told: the hold is over either way, and a loss has been logged.
	_ = hold.Unlock(sl.ctx)
}
