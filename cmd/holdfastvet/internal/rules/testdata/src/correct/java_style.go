package correct

import (
	"context"
	"errors"
	"time"

	"holdfast/multilock"
	"holdfast/rlock"

	"example.com/shop"
)

// tryFinally is lock.lock(); try { … } finally { lock.unlock(); }.
func (a *app) tryFinally(ctx context.Context) (err error) {
	ctx = rlock.WithOwner(ctx)
	lock := a.locks.NewLock("order")
	if _, err := lock.Lock(ctx, rlock.Watchdog); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock(ctx)) }()
	return a.reentered(ctx)
}

// reentered is called with the lock and takes it again.
func (a *app) reentered(ctx context.Context) (err error) {
	lock := a.locks.NewLock("order")
	if _, err := lock.Lock(ctx, rlock.Watchdog); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock(ctx)) }()
	shop.Ship(ctx)
	return nil
}

// ifTryLock is if (lock.tryLock(1, 10, SECONDS)) { try { … } finally { … } }.
func (a *app) ifTryLock(ctx context.Context) error {
	ctx = rlock.EnsureOwner(ctx)
	_, err := a.ledger.TryLock(ctx, time.Second, rlock.Lease(10*time.Second))
	if errors.Is(err, rlock.ErrNotAcquired) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = a.ledger.Unlock(ctx) }()
	time.Sleep(time.Second)
	return shop.Bill(ctx, shop.Order{})
}

// downgrade is the one of ReentrantReadWriteLock's documentation.
func (a *app) downgrade(ctx context.Context) (err error) {
	ctx = rlock.WithOwner(ctx)
	lock := a.locks.NewReadWriteLock("cache")
	if _, err := lock.Write().Lock(ctx, rlock.Watchdog); err != nil {
		return err
	}
	_, err = lock.Read().Lock(ctx, rlock.Watchdog)
	if err = errors.Join(err, lock.Write().Unlock(ctx)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Read().Unlock(ctx)) }()
	return shop.Bill(ctx, shop.Order{})
}

// downgradeWithHolds is the same with holds.
func (a *app) downgradeWithHolds(ctx context.Context) (err error) {
	ctx = rlock.WithOwner(ctx)
	lock := a.locks.NewReadWriteLock("cache")
	writer, err := lock.Write().Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	reader, err := lock.Read().Lock(ctx, rlock.Watchdog)
	if err = errors.Join(err, writer.Unlock()); err != nil {
		return errors.Join(err, reader.Unlock())
	}
	defer reader.UnlockTo(&err)
	return shop.Bill(reader.Context(), shop.Order{})
}

// account locks in one method and unlocks in another.
type account struct{ lock *rlock.Lock }

func (a *account) enter(ctx context.Context) error {
	_, err := a.lock.Lock(ctx, rlock.Watchdog)
	return err
}

func (a *account) exit(ctx context.Context) error { return a.lock.Unlock(ctx) }

// enterNamed and exitNamed make the lock anew.
func (a *app) enterNamed(ctx context.Context, id string) error {
	_, err := a.locks.NewLock("account:"+id).Lock(ctx, rlock.Watchdog)
	return err
}

func (a *app) exitNamed(ctx context.Context, id string) error {
	return a.locks.NewLock("account:" + id).Unlock(ctx)
}

// lockQuietly and unlockQuietly are helpers, as old code has.
func lockQuietly(ctx context.Context, lock *rlock.Lock) bool {
	_, err := lock.Lock(ctx, rlock.Watchdog)
	return err == nil
}

func unlockQuietly(ctx context.Context, lock *rlock.Lock) { _ = lock.Unlock(ctx) }

func (a *app) quietly(ctx context.Context) {
	ctx = rlock.WithOwner(ctx)
	lock := a.locks.NewLock("order")
	if !lockQuietly(ctx, lock) {
		return
	}
	defer unlockQuietly(ctx, lock)
	shop.Ship(ctx)
}

func (a *app) lockedHere(ctx context.Context) error {
	ctx = rlock.WithOwner(ctx)
	lock := a.locks.NewLock("order")
	if _, err := lock.Lock(ctx, rlock.Watchdog); err != nil {
		return err
	}
	defer unlockQuietly(ctx, lock)
	return shop.Bill(ctx, shop.Order{})
}

func (a *app) multiLock(ctx context.Context) (err error) {
	ctx = rlock.WithOwner(ctx)
	all := multilock.NewOn(a.locks, "a", "b", "c")
	if _, err := all.TryLock(ctx, time.Second, rlock.Watchdog); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, all.Unlock(ctx)) }()
	return shop.Bill(ctx, shop.Order{})
}

func (a *app) isHeld(ctx context.Context) (err error) {
	ctx = rlock.EnsureOwner(ctx)
	if held, err := a.ledger.IsHeld(ctx); err != nil || !held {
		if _, err := a.ledger.Lock(ctx, rlock.Watchdog); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, a.ledger.Unlock(ctx)) }()
	}
	return shop.Bill(ctx, shop.Order{})
}
