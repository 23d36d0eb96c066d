package shortlease

import (
	"context"
	"time"

	"holdfast/rlock"
)

const lease = 5 * time.Second

func longer(ctx context.Context, lock rlock.Locker) (err error) {
	hold, err := lock.Lock(ctx, rlock.Lease(5*time.Second))
	if err != nil {
		return err
	}
	defer hold.UnlockTo(&err)
	time.Sleep(10 * time.Second) // want `the lease of 5s in line 13 ends during this sleep of 10s; somebody else may get the lock meanwhile; give the lease rlock.Watchdog, or call hold.Extend before`
	return nil
}

func equal(ctx context.Context, lock rlock.Locker) error {
	hold, err := lock.TryLock(ctx, time.Second, rlock.Lease(lease))
	if err != nil {
		return err
	}
	for range 3 {
		time.Sleep(lease) // want `the lease of 5s in line 23 ends during this sleep of 5s`
	}
	return hold.Unlock()
}

func byVariable(ctx context.Context, lock *rlock.Lock) error {
	ctx = rlock.WithOwner(ctx)
	lease := 100 * time.Millisecond
	if _, err := lock.TryLock(ctx, time.Second, rlock.Lease(lease)); err != nil {
		return err
	}
	defer func() { _ = lock.Unlock(ctx) }()
	time.Sleep(time.Second) // want `the lease of 100ms`
	return nil
}

func inDo(ctx context.Context, lock rlock.Locker) error {
	return rlock.Do(ctx, lock, time.Second, rlock.Lease(lease), func(ctx context.Context) error {
		if ctx.Err() == nil {
			time.Sleep(time.Minute) // want `the lease of 5s in line 45 ends during this sleep of 1m0s`
		}
		return nil
	})
}

const (
	bare   = 30
	typed  = time.Duration(5)
	second = time.Second
)

func units(ctx context.Context, lock *rlock.Lock, hold *rlock.Hold) {
	_, _ = lock.TryLock(ctx, 3, rlock.Lease(30*time.Second))      // want `the wait of 3 is 3ns, because a number without a unit counts nanoseconds; write the unit, as in 3\*time.Second`
	_, _ = lock.TryLock(ctx, time.Second, 30)                     // want `the lease of 30 is 30ns, .* as in rlock.Lease\(30\*time.Second\)`
	_, _ = lock.Lock(ctx, bare)                                   // want `the lease of bare is 30ns, .* as in rlock.Lease\(30\*time.Second\)`
	_, _ = lock.Lock(ctx, rlock.Lease(typed*2))                   // want `the lease of typed \* 2 is 10ns, .* as in 10\*time.Second`
	_, _ = lock.TryLock(ctx, 5000, rlock.Lease(time.Duration(9))) // want `the wait of 5000 is 5µs, .* as in 5000\*time.Millisecond` `the lease of time.Duration\(9\) is 9ns`
	_ = hold.Extend(ctx, 30)                                      // want `the lease of 30 is 30ns`
	_ = rlock.AsSyncLocker(ctx, lock, 30)                         // want `the lease of 30 is 30ns`
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

func shorter(ctx context.Context, lock rlock.Locker) (err error) {
	hold, err := lock.Lock(ctx, rlock.Lease(lease))
	if err != nil {
		time.Sleep(time.Minute)
		return err
	}
	time.Sleep(time.Second)
	if err := hold.Unlock(); err != nil {
		return err
	}
	time.Sleep(time.Minute)
	return nil
}

func watched(ctx context.Context, lock rlock.Locker) (err error) {
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	defer hold.UnlockTo(&err)
	time.Sleep(time.Minute)
	return nil
}

func extended(ctx context.Context, lock rlock.Locker) (err error) {
	hold, err := lock.Lock(ctx, rlock.Lease(lease))
	if err != nil {
		return err
	}
	defer hold.UnlockTo(&err)
	if err := hold.Extend(ctx, rlock.Lease(2*time.Minute)); err != nil {
		return err
	}
	time.Sleep(time.Minute)
	return nil
}

func inBackground(ctx context.Context, lock rlock.Locker) (err error) {
	hold, err := lock.Lock(ctx, rlock.Lease(lease))
	if err != nil {
		return err
	}
	defer hold.UnlockTo(&err)
	go func() { time.Sleep(time.Minute) }()
	return nil
}

func retried(ctx context.Context, lock rlock.Locker) error {
	for {
		hold, err := lock.TryLock(ctx, rlock.NoWait, rlock.Lease(lease))
		if err == nil {
			return hold.Unlock()
		}
		time.Sleep(time.Minute)
	}
}

func throttled(ctx context.Context, lock rlock.Locker) error {
	hold, err := lock.TryLock(ctx, rlock.NoWait, rlock.Lease(lease))
	if err != nil {
		return err
	}
	hold.Leave()
	time.Sleep(time.Minute)
	return nil
}
