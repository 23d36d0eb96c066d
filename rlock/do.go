package rlock

import (
	"context"
	"errors"
	"time"
)

// Do runs fn under the lock: it acquires lock with TryLock(ctx, wait, lease), calls fn with the
// hold's context if it has the lock, and releases the hold when fn returns or panics.
//
// It returns fn's error joined with the release's. A loss of the lock while fn ran is thus reported
// ([ErrLost]) even if fn did not notice: then fn's work may have overlapped with another holder's.
func Do(ctx context.Context, lock Locker, wait, lease time.Duration, fn func(context.Context) error,
) (err error) {
	hold, err := lock.TryLock(ctx, wait, lease)
	if err != nil {
		return err
	}
	defer func() {
		// fn may have returned the loss already, as the cause of its context.
		if failure := hold.Unlock(ctx); failure != nil && !errors.Is(err, failure) {
			err = errors.Join(err, failure)
		}
	}()
	return fn(hold.Context())
}
