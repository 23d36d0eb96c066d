package correct

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
	"time"

	"example.com/shop"
	"example.com/web"
	"golang.org/x/sync/errgroup"
	"holdfast/multilock"
	"holdfast/redlock"
	"holdfast/rlock"
)

func (a *app) deferred(ctx context.Context, order shop.Order) (err error) {
	hold, err := a.locks.NewLock("order:"+order.ID).Lock(ctx, rlock.Watchdog)
	if err != nil {
		return fmt.Errorf("bill %s: %w", order.ID, err)
	}
	defer hold.UnlockTo(&err)
	return shop.Bill(hold.Context(), order)
}

func (a *app) deferredJoin(ctx context.Context, order shop.Order) (err error) {
	hold, err := a.locks.NewLock("order:"+order.ID).Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hold.Unlock()) }()
	return shop.Bill(hold.Context(), order)
}

func (a *app) deferredLog(ctx context.Context) {
	hold, err := a.ledger.TryLock(ctx, rlock.NoWait, rlock.Watchdog)
	if err != nil {
		slog.WarnContext(ctx, "busy", "error", err)
		return
	}
	defer func() {
		release, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := hold.Unlock(); err != nil {
			slog.ErrorContext(release, "lost", "error", err)
		}
	}()
	slog.InfoContext(ctx, "locked", "by", shop.User(ctx))
	shop.Ship(hold.Context())
}

func (a *app) do(ctx context.Context, order shop.Order) error {
	return rlock.Do(ctx, a.ledger, time.Second, rlock.Watchdog, func(ctx context.Context) error {
		if err := shop.Save(ctx, order); err != nil {
			return err
		}
		return shop.Bill(ctx, order)
	})
}

func (a *app) with(ctx context.Context, id string) (shop.Order, error) {
	order, err := rlock.With(ctx, a.ledger, time.Second, rlock.Lease(10*time.Second),
		func(locked context.Context) (shop.Order, error) {
			time.Sleep(time.Second)
			return shop.Load(locked, id)
		})
	if errors.Is(err, rlock.ErrNotRun) {
		return shop.Load(ctx, id)
	}
	return order, err
}

func (a *app) fewTries(ctx context.Context) error {
	for try := range 5 {
		hold, err := a.ledger.TryLock(ctx, time.Second, rlock.Watchdog)
		if errors.Is(err, rlock.ErrNotAcquired) {
			time.Sleep(time.Duration(try) * time.Second)
			continue
		}
		if err != nil {
			return err
		}
		return func() (err error) {
			defer hold.UnlockTo(&err)
			return shop.Bill(hold.Context(), shop.Order{})
		}()
	}
	return rlock.ErrNotAcquired
}

func (a *app) untilAcquired(ctx context.Context) (err error) {
	var hold *rlock.Hold
	for hold == nil {
		hold, err = a.ledger.TryLock(ctx, time.Second, rlock.Watchdog)
		if err != nil && !errors.Is(err, rlock.ErrNotAcquired) {
			return err
		}
	}
	defer hold.UnlockTo(&err)
	return shop.Bill(hold.Context(), shop.Order{})
}

func (a *app) labelled(ctx context.Context, ids []string) (err error) {
	var hold *rlock.Hold
search:
	for {
		for _, id := range ids {
			hold, err = a.locks.NewLock(id).TryLock(ctx, rlock.NoWait, rlock.Watchdog)
			switch {
			case err == nil:
				break search
			case !errors.Is(err, rlock.ErrNotAcquired):
				return err
			}
		}
		time.Sleep(time.Second)
	}
	defer hold.UnlockTo(&err)
	return shop.Bill(hold.Context(), shop.Order{})
}

func (a *app) elseBranch(ctx context.Context) error {
	if hold, err := a.ledger.TryLock(ctx, rlock.NoWait, rlock.Lease(time.Second)); err != nil {
		return err
	} else if !hold.Valid() {
		return rlock.ErrLost
	} else {
		defer func() { _ = hold.Unlock() }()
		return shop.Bill(hold.Context(), shop.Order{})
	}
}

func (a *app) shadowed(ctx context.Context) (err error) {
	hold, err := a.ledger.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	defer func() {
		if err := hold.Unlock(); err != nil {
			log.Print(err)
		}
	}()
	if err := shop.Bill(hold.Context(), shop.Order{}); err != nil {
		return err
	}
	return nil
}

func (a *app) optional(ctx context.Context, guarded bool) (err error) {
	work := ctx
	if guarded {
		var hold *rlock.Hold
		if hold, err = a.ledger.Lock(ctx, rlock.Watchdog); err != nil {
			return err
		}
		defer hold.UnlockTo(&err)
		work = hold.Context()
	}
	return shop.Bill(work, shop.Order{})
}

func (a *app) nested(ctx context.Context) (err error) {
	outer, err := a.ledger.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	defer outer.UnlockTo(&err)
	inner, err := a.ledger.Lock(outer.Context(), rlock.Watchdog)
	if err != nil {
		return err
	}
	defer inner.UnlockTo(&err)
	return shop.Bill(inner.Context(), shop.Order{})
}

func (a *app) replaced(ctx context.Context) (err error) {
	hold, err := a.ledger.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	defer hold.UnlockTo(&err)
	ctx, cancel := context.WithTimeout(hold.Context(), time.Minute)
	defer cancel()
	return shop.Bill(ctx, shop.Order{})
}

func (a *app) multi(ctx context.Context, from, to string) (err error) {
	both := multilock.New(a.locks.NewLock(from), a.locks.NewReadWriteLock(to).Write())
	hold, err := both.TryLock(ctx, time.Second, rlock.Watchdog)
	if err != nil {
		return err
	}
	defer hold.UnlockTo(&err)
	return shop.Bill(hold.Context(), shop.Order{})
}

func red(ctx context.Context, clients ...*rlock.Client) (err error) {
	hold, err := redlock.NewOn("order", redlock.Options{}, clients...).Lock(ctx, rlock.Lease(10*time.Second))
	if err != nil {
		return err
	}
	defer hold.UnlockTo(&err)
	if err := hold.Extend(ctx, rlock.Lease(time.Hour)); err != nil {
		return err
	}
	time.Sleep(time.Minute)
	return shop.Bill(hold.Context(), shop.Order{})
}

func (a *app) fenced(ctx context.Context, order shop.Order) (err error) {
	hold, err := a.locks.NewFencedLock("ledger").Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	defer hold.UnlockTo(&err)
	token := hold.Token()
	return shop.Write(hold.Context(), token, order)
}

func (a *app) throttle(ctx context.Context) (bool, error) {
	hold, err := a.locks.NewLock("mail").TryLock(ctx, rlock.NoWait, rlock.Lease(time.Minute))
	if errors.Is(err, rlock.ErrNotAcquired) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	shop.Ship(hold.Context())
	hold.Leave()
	return true, nil
}

func (a *app) begin(ctx context.Context, id string) (string, error) {
	hold, err := a.locks.NewLock(id).Lock(ctx, rlock.Lease(time.Hour))
	if err != nil {
		return "", err
	}
	if err := shop.Bill(hold.Context(), shop.Order{ID: id}); err != nil {
		return "", errors.Join(err, hold.Unlock())
	}
	return hold.Detach()
}

func (a *app) end(ctx context.Context, token string) (err error) {
	hold, err := a.locks.Attach(ctx, token, rlock.Lease(time.Hour))
	if err != nil {
		return err
	}
	defer hold.UnlockTo(&err)
	return shop.Bill(hold.Context(), shop.Order{})
}

// leader keeps its hold in a struct.
type leader struct {
	hold *rlock.Hold
	lock rlock.Locker
}

func (l *leader) elect(ctx context.Context) error {
	hold, err := l.lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	l.hold = hold
	return nil
}

func (l *leader) electInto(ctx context.Context) (err error) {
	l.hold, err = l.lock.TryLock(ctx, time.Second, rlock.Watchdog)
	return err
}

func (l *leader) resign(ctx context.Context) error { return l.hold.Unlock() }

func newLeader(ctx context.Context, lock rlock.Locker) (*leader, error) {
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return nil, err
	}
	if err := shop.Bill(hold.Context(), shop.Order{}); err != nil {
		return nil, errors.Join(err, hold.Unlock())
	}
	return &leader{hold: hold, lock: lock}, nil
}

// lead works until the lock is lost or the context ends.
func (a *app) lead(ctx context.Context) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	for {
		hold, err := a.ledger.Lock(ctx, rlock.Watchdog)
		if err != nil {
			return err
		}
		select {
		case <-hold.Done():
			shop.Ship(ctx) // somebody else leads
		case <-ctx.Done():
			return hold.Unlock()
		}
	}
}

func (a *app) allOf(ctx context.Context, ids []string) (err error) {
	holds := make(map[string]*rlock.Hold)
	defer func() {
		for _, hold := range holds {
			err = errors.Join(err, hold.Unlock())
		}
	}()
	for _, id := range ids {
		hold, err := a.locks.NewLock(id).TryLock(ctx, rlock.NoWait, rlock.Watchdog)
		if err != nil {
			return err
		}
		holds[id] = hold
	}
	return nil
}

func (a *app) release(ctx context.Context) (context.Context, func() error, error) {
	hold, err := a.ledger.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return nil, nil, err
	}
	return hold.Context(), func() error { return hold.Unlock() }, nil
}

func (a *app) handOff(ctx context.Context, to chan<- *rlock.Hold) error {
	hold, err := a.ledger.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	select {
	case to <- hold:
		return nil
	case <-ctx.Done():
		return errors.Join(ctx.Err(), hold.Unlock())
	}
}

func (a *app) background(ctx context.Context) error {
	hold, err := a.ledger.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	go func() {
		defer func() { _ = hold.Unlock() }()
		shop.Ship(hold.Context())
	}()
	return nil
}

func (a *app) detached(ctx context.Context, orders []shop.Order) (err error) {
	hold, err := a.ledger.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	defer hold.UnlockTo(&err)
	g, ctx := errgroup.WithContext(rlock.Detached(hold.Context()))
	for _, order := range orders {
		g.Go(func() error {
			return rlock.Do(ctx, a.locks.NewLock(order.Customer), time.Second, rlock.Watchdog,
				func(ctx context.Context) error { return shop.Bill(ctx, order) })
		})
	}
	return g.Wait()
}

func (a *app) workers(ctx context.Context, orders []shop.Order) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, order := range orders {
		g.Go(func() (err error) {
			hold, err := a.locks.NewLock(order.ID).Lock(ctx, rlock.Watchdog)
			if err != nil {
				return err
			}
			defer hold.UnlockTo(&err)
			return shop.Bill(hold.Context(), order)
		})
	}
	return g.Wait()
}

func (a *app) handler(w web.ResponseWriter, r *web.Request) {
	hold, err := a.ledger.TryLock(r.Context(), time.Second, rlock.Watchdog)
	var held *rlock.HeldError
	switch {
	case errors.As(err, &held):
		web.Error(w, "held by "+held.Owner, web.StatusConflict)
		return
	case err != nil:
		web.Error(w, err.Error(), web.StatusServiceUnavailable)
		return
	}
	defer func() { _ = hold.Unlock() }()
	r = r.WithContext(hold.Context())
	shop.Ship(r.Context())
}

func (a *app) counter(ctx context.Context, counts map[string]int, id string) error {
	hold, err := a.locks.NewLock(id).Lock(ctx, rlock.Lease(time.Second))
	if err != nil {
		return err
	}
	counts[id] += rand.IntN(6)
	return hold.Unlock()
}

func (a *app) handOverHand(ctx context.Context, ids []string) (err error) {
	var last *rlock.Hold
	defer func() {
		if last != nil {
			last.UnlockTo(&err)
		}
	}()
	for _, id := range ids {
		next, err := a.locks.NewLock(id).Lock(rlock.Detached(ctx), rlock.Watchdog)
		if err != nil {
			return err
		}
		if last != nil {
			_ = last.Unlock()
		}
		last = next
	}
	return nil
}

func (a *app) fatal(ctx context.Context) {
	hold, err := a.ledger.Lock(ctx, rlock.Watchdog)
	if err != nil {
		log.Fatal(err)
	}
	if len(os.Args) < 2 {
		log.Fatalf("usage: %s order", os.Args[0])
	}
	if err := hold.Unlock(); err != nil {
		log.Fatal(err)
	}
}

func (a *app) quota(ctx context.Context) error {
	//holdfastvet:ignore unreleased the hour is the quota, whatever becomes of this process
	_, err := a.ledger.TryLock(ctx, rlock.NoWait, rlock.Lease(time.Hour))
	return err
}

// metered is a Locker of its own around another.
type metered struct{ inner rlock.Locker }

func (m metered) Lock(ctx context.Context, lease rlock.Lease) (*rlock.Hold, error) {
	hold, err := m.inner.Lock(ctx, lease)
	slog.Info("locked", "error", err)
	return hold, err
}

func (m metered) TryLock(ctx context.Context, wait time.Duration, lease rlock.Lease) (*rlock.Hold, error) {
	return m.inner.TryLock(ctx, wait, lease)
}

func (m metered) Unlock(ctx context.Context) error { return m.inner.Unlock(ctx) }

func (m metered) Name() string { return "metered " + m.inner.Name() }

var _ rlock.Locker = metered{}

func (m metered) ship(ctx context.Context) (err error) {
	hold, err := m.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	defer hold.UnlockTo(&err)
	return shop.Bill(hold.Context(), shop.Order{})
}
