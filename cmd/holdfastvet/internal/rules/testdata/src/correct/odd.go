package correct

import (
	"context"
	"errors"
	"time"

	"example.com/shop"
	"holdfast/rlock"
)

// repository embeds its lock.
type repository struct {
	*rlock.Lock
	holds [2]*rlock.Hold
}

func (r *repository) save(ctx context.Context) (err error) {
	hold, err := r.TryLock(ctx, time.Second, rlock.Watchdog)
	if err != nil {
		return err
	}
	defer hold.UnlockTo(&err)
	return shop.Save(hold.Context(), shop.Order{})
}

func (r *repository) byIndex(ctx context.Context) (err error) {
	r.holds[0], err = r.TryLock(ctx, time.Second, rlock.Watchdog)
	return err
}

func (r *repository) java(ctx context.Context) (err error) {
	ctx = rlock.EnsureOwner(ctx)
	if _, err := r.Lock.Lock(ctx, rlock.Watchdog); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Unlock(ctx)) }()
	return shop.Save(ctx, shop.Order{})
}

func generic[L rlock.Locker, T any](
	ctx context.Context, lock L, fn func(context.Context) (T, error),
) (result T, err error) {
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return result, err
	}
	defer hold.UnlockTo(&err)
	return fn(hold.Context())
}

func methodValue(ctx context.Context, lock rlock.Locker) (err error) {
	acquire := lock.Lock
	hold, err := acquire(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	defer hold.UnlockTo(&err)
	return shop.Bill(hold.Context(), shop.Order{})
}

var ship = func(ctx context.Context, lock rlock.Locker) (err error) {
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	defer hold.UnlockTo(&err)
	return shop.Bill(hold.Context(), shop.Order{})
}

func backwards(ctx context.Context, lock rlock.Locker) (err error) {
	tries := 0
again:
	hold, err := lock.TryLock(ctx, time.Second, rlock.Watchdog)
	if errors.Is(err, rlock.ErrNotAcquired) && tries < 3 {
		tries++
		goto again
	}
	if err != nil {
		return err
	}
	defer hold.UnlockTo(&err)
	return shop.Bill(hold.Context(), shop.Order{})
}

func through(ctx context.Context, lock rlock.Locker) (err error) {
	hold, err := lock.TryLock(ctx, time.Second, rlock.Watchdog)
	switch {
	case errors.Is(err, rlock.ErrDeadlock):
		fallthrough
	case errors.Is(err, rlock.ErrNotAcquired):
		return nil
	case err == nil && hold.Valid():
	default:
		return err
	}
	defer hold.UnlockTo(&err)
	return shop.Bill(hold.Context(), shop.Order{})
}

func onFailureOnly(ctx context.Context, lock rlock.Locker) (l *leader, err error) {
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, hold.Unlock())
		}
	}()
	if err := shop.Bill(hold.Context(), shop.Order{}); err != nil {
		return nil, err
	}
	return &leader{hold: hold}, nil
}

func inLiteral(ctx context.Context, lock rlock.Locker, retry func(func() error) error) (err error) {
	var hold *rlock.Hold
	if err := retry(func() (err error) {
		hold, err = lock.TryLock(ctx, rlock.NoWait, rlock.Watchdog)
		return err
	}); err != nil {
		return err
	}
	defer hold.UnlockTo(&err)
	return shop.Bill(hold.Context(), shop.Order{})
}

func byClosure(ctx context.Context, lock rlock.Locker) error {
	hold, err := lock.TryLock(ctx, rlock.NoWait, rlock.Watchdog)
	failed := func() bool { return err != nil }
	if failed() {
		return err
	}
	return hold.Unlock()
}

func byStruct(ctx context.Context, lock rlock.Locker) error {
	hold, err := lock.TryLock(ctx, rlock.NoWait, rlock.Watchdog)
	attempt := struct{ err error }{err}
	if attempt.err != nil {
		return attempt.err
	}
	return hold.Unlock()
}

func byAddress(ctx context.Context, lock rlock.Locker) error {
	hold, err := lock.TryLock(ctx, rlock.NoWait, rlock.Watchdog)
	if err != nil {
		return err
	}
	return release(ctx, &hold)
}

func release(ctx context.Context, hold **rlock.Hold) error { return (*hold).Unlock() }

func eachDeferred(ctx context.Context, ids []string, locks *rlock.Client) (err error) {
	for _, id := range ids {
		hold, failure := locks.NewLock(id).Lock(rlock.Detached(ctx), rlock.Watchdog)
		if failure != nil {
			return failure
		}
		defer hold.UnlockTo(&err)
	}
	return nil
}

func eitherOf(ctx context.Context, a, b rlock.Locker) (err error) {
	hold, err := a.TryLock(ctx, rlock.NoWait, rlock.Watchdog)
	if err != nil {
		hold, err = b.TryLock(ctx, rlock.NoWait, rlock.Watchdog)
	}
	if err != nil {
		return err
	}
	defer hold.UnlockTo(&err)
	return shop.Bill(hold.Context(), shop.Order{})
}

func inSelect(ctx context.Context, lock rlock.Locker, jobs <-chan shop.Order) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case job := <-jobs:
			hold, err := lock.Lock(ctx, rlock.Watchdog)
			if err != nil {
				return err
			}
			if err := func() (err error) {
				defer hold.UnlockTo(&err)
				return shop.Bill(hold.Context(), job)
			}(); err != nil {
				return err
			}
		}
	}
}
