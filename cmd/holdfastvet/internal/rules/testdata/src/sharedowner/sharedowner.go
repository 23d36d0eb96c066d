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
			_ = inner.Unlock()
		}
	}()
}

func byVariable(ctx context.Context, lock rlock.Locker, locks []rlock.Locker) (err error) {
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	defer hold.UnlockTo(&err)
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
		_ = hold.Unlock()
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

func inLoop(ctx context.Context, lock *rlock.Lock, client *rlock.Client, ids []string) {
	ctx = rlock.WithOwner(ctx)
	for range 3 {
		go func() {
			_, _ = lock.Lock(ctx, rlock.Watchdog) // want `lock.Lock locks in several goroutines with the owner that line 74 made, so the lock does not exclude them from each other; call rlock.WithOwner in each goroutine`
		}()
		go serve(ctx, lock) // want `serve locks in several goroutines`
	}
	var group errgroup.Group
	for _, id := range ids {
		counter := client.NewLock("counter")
		group.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			shop.Ship(context.WithValue(ctx, &group, id))
			return rlock.Do(ctx, counter, time.Second, rlock.Watchdog, work) // want `rlock.Do locks in several goroutines`
		})
	}
	_ = group.Wait()
}

func twice(ctx context.Context, w *worker) {
	owner := rlock.EnsureOwner(ctx)
	go w.run(owner)
	if ctx.Err() == nil {
		go func(ctx context.Context) {
			_ = rlock.Do(ctx, w.lock, 0, -1, work) // want `rlock.Do locks in several goroutines with the owner that line 95 made`
		}(owner)
	}
	go w.run(owner) // want `w.run locks in several goroutines`
}

type worker struct{ lock *rlock.Lock }

func (w *worker) run(ctx context.Context) { serveHere(ctx, w); _, _ = w.lock.Lock(ctx, -1) }

func serveHere(ctx context.Context, w *worker) {}

// What follows is right.

func ownersApart(ctx context.Context, lock *rlock.Lock, client *rlock.Client, ids []string) {
	for range 3 {
		ctx := rlock.WithOwner(ctx)
		go serve(ctx, lock)
		go serve(rlock.WithOwner(ctx), lock)
	}
	ctx = rlock.WithOwner(ctx)
	for _, id := range ids {
		go serve(ctx, client.NewLock(id))
		go func() { _, _ = client.NewLock("item:"+id).Lock(ctx, rlock.Watchdog) }()
		go func() {
			ctx := rlock.WithOwner(ctx)
			_, _ = lock.Lock(ctx, rlock.Watchdog)
		}()
	}
	for {
		done := make(chan int)
		go func() {
			_, _ = lock.Lock(ctx, rlock.Watchdog)
			close(done)
		}()
		<-done
	}
}

func locksApart(ctx context.Context, a, b *rlock.Lock, workers []*worker) {
	ctx = rlock.WithOwner(ctx)
	go serve(ctx, a)
	go serve(ctx, b)
	for _, w := range workers {
		go w.run(ctx)
	}
}

func oneAtATime(ctx context.Context, a *rlock.Lock, group *sync.WaitGroup) {
	ctx = rlock.WithOwner(ctx)
	if group == nil {
		go serve(ctx, a)
	} else {
		group.Go(func() { _, _ = a.Lock(ctx, rlock.Watchdog) })
		group.Wait()
		group.Go(func() { _, _ = a.Lock(ctx, rlock.Watchdog) })
	}
	for ctx.Err() == nil {
		go serve(rlock.Detached(ctx), a)
		if a.Name() != "" {
			go serve(ctx, a)
			return
		}
	}
}

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
			_ = inner.Unlock()
		}
		_ = hold.Unlock()
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
