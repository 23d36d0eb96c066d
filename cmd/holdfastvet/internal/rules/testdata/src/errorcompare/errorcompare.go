package errorcompare

import (
	"context"
	"errors"

	"example.com/shop"
	"holdfast/redlock"
	"holdfast/rlock"
)

func pack(ctx context.Context) error { return shop.Bill(ctx, shop.Order{}) }

func never(ctx context.Context, lock rlock.Locker) error {
	err := rlock.Do(ctx, lock, rlock.NoWait, rlock.Watchdog, pack)
	if err == rlock.ErrNotAcquired { // want `err never equals rlock.ErrNotAcquired, because errors of holdfast wrap rlock.ErrNotAcquired; write errors.Is\(err, rlock.ErrNotAcquired\)`
		return nil
	}
	if rlock.ErrLost != err && err != nil { // want `write !errors.Is\(err, rlock.ErrLost\)`
		return err
	}
	switch err {
	case nil:
	case rlock.ErrLost, (rlock.ErrGone): // want `err never equals rlock.ErrLost` `err never equals rlock.ErrGone`
		return nil
	case context.Canceled:
	}
	return err
}

func always(ctx context.Context, lock rlock.Locker) (err error) {
	hold, failed := lock.TryLock(ctx, rlock.NoWait, rlock.Watchdog)
	if failed == rlock.ErrNotAcquired { // want `failed never equals rlock.ErrNotAcquired`
		return pack(ctx) // without the lock
	}
	if failed != nil {
		return failed
	}
	defer hold.UnlockTo(&err)
	if hold.Err() == rlock.ErrLost || context.Cause(hold.Context()) == rlock.ErrForced { // want `hold.Err\(\) never equals rlock.ErrLost` `context.Cause\(hold.Context\(\)\) never equals rlock.ErrForced`
		return nil
	}
	if hold.Extend(ctx, rlock.Watchdog) == redlock.ErrNoQuorum { // want `never equals redlock.ErrNoQuorum`
		return nil
	}
	return pack(hold.Context())
}

type result struct{ err error }

func fields(r result, errs []error) bool {
	return r.err == rlock.ErrInvalid || // want `r.err never equals rlock.ErrInvalid`
		errs[0] == rlock.ErrInvalid
}

// What follows is no mistake.

type refusal struct{ error }

func (refusal) Is(target error) bool { return target == rlock.ErrNotAcquired }

type loss struct{ error }

func (loss) Is(err error) bool { return err == rlock.ErrLost }

func right(ctx context.Context, lock rlock.Locker, want error) bool {
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	if errors.Is(err, rlock.ErrNotAcquired) || err == context.Canceled || err == nil {
		return false
	}
	for e := err; e != nil; e = errors.Unwrap(e) {
		if e == rlock.ErrLost {
			return true
		}
	}
	err = hold.Unlock()
	return want == rlock.ErrLost || context.Cause(hold.Context()) == rlock.ErrReleased ||
		errors.Unwrap(want) == rlock.ErrGone
}
