package units

import (
	"context"
	"time"

	"holdfast/rlock"
)

const lease = 5 * time.Second

const (
	bare   = 30
	typed  = time.Duration(5)
	second = time.Second
)

func withoutUnit(ctx context.Context, lock *rlock.Lock, hold *rlock.Hold) {
	_, _ = lock.TryLock(ctx, 3, rlock.Lease(30*time.Second))      // want `the wait of 3 is 3ns, because a number without a unit counts nanoseconds; write the unit, as in 3\*time.Second`
	_, _ = lock.TryLock(ctx, time.Second, 30)                     // want `the lease of 30 is 30ns, .* as in rlock.Lease\(30\*time.Second\)`
	_, _ = lock.Lock(ctx, bare)                                   // want `the lease of bare is 30ns, .* as in rlock.Lease\(30\*time.Second\)`
	_, _ = lock.Lock(ctx, rlock.Lease(typed*2))                   // want `the lease of typed \* 2 is 10ns, .* as in 10\*time.Second`
	_, _ = lock.TryLock(ctx, 5000, rlock.Lease(time.Duration(9))) // want `the wait of 5000 is 5µs, .* as in 5000\*time.Millisecond` `the lease of time.Duration\(9\) is 9ns`
	_ = hold.Extend(ctx, 30)                                      // want `the lease of 30 is 30ns`
	_ = rlock.Do(ctx, lock, 3, 30, nil)                           // want `the wait of 3 is 3ns` `the lease of 30 is 30ns`
	_ = rlock.Options{WatchdogLease: 30, FairWindow: time.Second} // want `the WatchdogLease of 30 is 30ns`
	wait, short := time.Duration(3), 4*time.Nanosecond
	_, _ = lock.TryLock(ctx, wait, rlock.Lease(lease)) // want `the wait of wait is 3ns`
	_, _ = lock.Lock(ctx, rlock.Lease(wait))           // want `the lease of wait is 3ns`
	_, _ = lock.Lock(ctx, rlock.Lease(short))
}

// What follows is right.

func unitsNamed(ctx context.Context, lock *rlock.Lock, n time.Duration) {
	_, _ = lock.TryLock(ctx, rlock.NoWait, rlock.Watchdog)
	_, _ = lock.TryLock(ctx, 0, -1)
	_, _ = lock.TryLock(ctx, 500*time.Microsecond, rlock.Lease(lease))
	_, _ = lock.TryLock(ctx, n, rlock.Lease(bare*time.Second))
	_, _ = lock.TryLock(ctx, second/2000, rlock.Lease(second))
	_ = rlock.Options{SyncReplicas: 3, WatchdogLease: bare * second}
	wait := time.Duration(3)
	wait *= time.Second
	_, _ = lock.TryLock(ctx, wait, rlock.Lease(lease))
}
