package sharedowner

import (
	"context"
	"sync"
	"time"

	"example.com/shop"
	"golang.org/x/sync/errgroup"
	"holdfast/rlock"
)

func statement(hold *rlock.Hold, lock rlock.Locker) {
	go func() {
		inner, err := lock.Lock(hold.Context(), rlock.Watchdog) // want `lock.Lock locks in a goroutine with the context of a hold; both have one owner, so the lock does not exclude them from each other; write rlock.Detached\(hold.Context\(\)\)`
		if err == nil {
			_ = inner.Unlock(hold.Context())
		}
	}()
}

func byVariable(ctx context.Context, lock rlock.Locker, locks []rlock.Locker) (err error) {
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	defer hold.UnlockTo(ctx, &err)
	g, ctx := errgroup.WithContext(hold.Context())
	for _, lock := range locks {
		g.Go(func() error {
			return rlock.Do(ctx, lock, time.Second, rlock.Watchdog, work) // want `rlock.Do locks in a goroutine`
		})
	}
	return g.Wait()
}

func work(ctx context.Context) error { return nil }

func byWaitGroup(ctx context.Context, hold *rlock.Hold, lock *rlock.Lock) {
	ctx = hold.Context()
	var group sync.WaitGroup
	group.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, _ = lock.TryLock(ctx, rlock.NoWait, rlock.Watchdog) // want `write rlock.Detached\(ctx\)`
	})
	group.Wait()
}

func byArgument(hold *rlock.Hold, lock *rlock.Lock) {
	go func(ctx context.Context) {
		_, _ = lock.Lock(ctx, rlock.Watchdog) // want `lock.Lock locks in a goroutine`
	}(hold.Context())
	go serve(hold.Context(), lock) // want `serve locks in a goroutine .* write rlock.Detached\(hold.Context\(\)\)`
}

func serve(ctx context.Context, lock *rlock.Lock) {
	if hold, err := lock.Lock(ctx, rlock.Watchdog); err == nil {
		_ = hold.Unlock(ctx)
	}
}

func inDo(ctx context.Context, a, b rlock.Locker) error {
	return rlock.Do(ctx, a, time.Second, rlock.Watchdog, func(ctx context.Context) error {
		done := make(chan error)
		go func() {
			done <- rlock.Do(ctx, b, time.Second, rlock.Watchdog, work) // want `rlock.Do locks in a goroutine`
		}()
		return <-done
	})
}

// What follows is right.

func apart(ctx context.Context, hold *rlock.Hold, lock *rlock.Lock) {
	go serve(rlock.Detached(hold.Context()), lock)
	go serve(rlock.WithOwner(hold.Context()), lock)
	go serve(ctx, lock)
	go func() {
		ctx := rlock.Detached(hold.Context())
		serve(ctx, lock)
		_, _ = lock.Lock(ctx, rlock.Watchdog)
		_, _ = lock.Lock(context.Background(), rlock.Watchdog)
	}()
}

func ownHold(ctx context.Context, a, b rlock.Locker) {
	go func() {
		hold, err := a.Lock(ctx, rlock.Watchdog)
		if err != nil {
			return
		}
		inner, err := b.Lock(hold.Context(), rlock.Watchdog)
		if err == nil {
			_ = inner.Unlock(ctx)
		}
		_ = hold.Unlock(ctx)
		_ = rlock.Do(ctx, a, 0, -1, func(ctx context.Context) error {
			return rlock.Do(ctx, b, 0, -1, work)
		})
	}()
}

func noLock(hold *rlock.Hold) {
	go shop.Ship(hold.Context())
	go func() { shop.Ship(hold.Context()) }()
}

func inSequence(hold *rlock.Hold, lock *rlock.Lock) {
	func() { serve(hold.Context(), lock) }()
	serve(hold.Context(), lock)
}
