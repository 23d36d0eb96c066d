package mistakes

import (
	"context"
	"time"

	"example.com/shop"
	"holdfast/rlock"
)

// nightly runs on one of several instances.
func (a *app) nightly(ctx context.Context) error {
	err := rlock.Do(ctx, a.locks.NewLock("nightly"), rlock.NoWait, rlock.Watchdog, a.closeBooks)
	if err == rlock.ErrNotAcquired { // mistake: errorcompare
		return nil
	}
	return err
}

func (a *app) closeBooks(ctx context.Context) error { return shop.Bill(ctx, shop.Order{}) }

// orElse does something else if the lock is busy, and goes on if Redis is down.
func (a *app) orElse(ctx context.Context, id string) (err error) {
	hold, err := a.locks.NewLock(id).TryLock(ctx, time.Second, rlock.Watchdog)
	switch err {
	case nil:
		defer hold.UnlockTo(ctx, &err)
	case rlock.ErrNotAcquired: // mistake: errorcompare
		return a.closeBooks(ctx)
	case rlock.ErrOutcomeUnknown: // mistake: errorcompare
	}
	return err
}

// lost reports whether the work has to be done again.
func lost(err error) bool {
	return err == rlock.ErrLost || // mistake: errorcompare
		err == rlock.ErrGone // mistake: errorcompare
}

// unless returns all errors but that of a busy lock.
func unless(result struct{ err error }) error {
	if result.err != rlock.ErrNotAcquired { // mistake: errorcompare
		return result.err
	}
	return nil
}
