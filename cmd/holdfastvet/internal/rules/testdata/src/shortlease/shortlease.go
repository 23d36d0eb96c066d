package shortlease

import (
	"context"
	"time"

	"holdfast/rlock"
)

const lease = 5 * time.Second

func longer(ctx context.Context, lock rlock.Locker) (err error) {
	hold, err := lock.Lock(ctx, 5*time.Second)
	if err != nil {
		return err
	}
	defer hold.UnlockTo(ctx, &err)
	time.Sleep(10 * time.Second) // want `the lease of 5s in line 13 ends during this sleep of 10s; somebody else may get the lock meanwhile; give the lease rlock.Watchdog, or call hold.Extend before`
	return nil
}

func equal(ctx context.Context, lock rlock.Locker) error {
	hold, err := lock.TryLock(ctx, time.Second, lease)
	if err != nil {
		return err
	}
	for range 3 {
		time.Sleep(lease) // want `the lease of 5s in line 23 ends during this sleep of 5s`
	}
	return hold.Unlock(ctx)
}

func byVariable(ctx context.Context, lock *rlock.Lock) error {
	ctx = rlock.WithOwner(ctx)
	lease := 100 * time.Millisecond
	if _, err := lock.TryLock(ctx, time.Second, lease); err != nil {
		return err
	}
	defer func() { _ = lock.Unlock(ctx) }()
	time.Sleep(time.Second) // want `the lease of 100ms`
	return nil
}

func inDo(ctx context.Context, lock rlock.Locker) error {
	return rlock.Do(ctx, lock, time.Second, lease, func(ctx context.Context) error {
		if ctx.Err() == nil {
			time.Sleep(time.Minute) // want `the lease of 5s in line 45 ends during this sleep of 1m0s`
		}
		return nil
	})
}

// What follows is right.

func shorter(ctx context.Context, lock rlock.Locker) (err error) {
	hold, err := lock.Lock(ctx, lease)
	if err != nil {
		time.Sleep(time.Minute)
		return err
	}
	time.Sleep(time.Second)
	if err := hold.Unlock(ctx); err != nil {
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
	defer hold.UnlockTo(ctx, &err)
	time.Sleep(time.Minute)
	return nil
}

func extended(ctx context.Context, lock rlock.Locker) (err error) {
	hold, err := lock.Lock(ctx, lease)
	if err != nil {
		return err
	}
	defer hold.UnlockTo(ctx, &err)
	if err := hold.Extend(ctx, 2*time.Minute); err != nil {
		return err
	}
	time.Sleep(time.Minute)
	return nil
}

func inBackground(ctx context.Context, lock rlock.Locker) (err error) {
	hold, err := lock.Lock(ctx, lease)
	if err != nil {
		return err
	}
	defer hold.UnlockTo(ctx, &err)
	go func() { time.Sleep(time.Minute) }()
	return nil
}

func retried(ctx context.Context, lock rlock.Locker) error {
	for {
		hold, err := lock.TryLock(ctx, rlock.NoWait, lease)
		if err == nil {
			return hold.Unlock(ctx)
		}
		time.Sleep(time.Minute)
	}
}

func throttled(ctx context.Context, lock rlock.Locker) error {
	hold, err := lock.TryLock(ctx, rlock.NoWait, lease)
	if err != nil {
		return err
	}
	hold.Leave()
	time.Sleep(time.Minute)
	return nil
}
