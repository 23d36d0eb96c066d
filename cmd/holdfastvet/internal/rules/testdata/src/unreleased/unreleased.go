package unreleased

import (
	"context"
	"errors"
	"log"
	"os"
	"time"

	"example.com/locking"
	"example.com/shop"
	"holdfast/multilock"
	"holdfast/rlock"
)

const lease = 10 * time.Second

func dropped(ctx context.Context, client *rlock.Client) error {
	_, err := client.NewLock("order").Lock(ctx, rlock.Lease(lease)) // want `the hold of client.NewLock\("order"\).Lock is dropped`
	return err
}

func ignored(ctx context.Context, client *rlock.Client) {
	lock := client.NewLock("order")
	lock.Lock(ctx, rlock.Lease(lease))                        // want `the hold of lock.Lock is dropped`
	defer lock.TryLock(ctx, rlock.NoWait, rlock.Lease(lease)) // want `the hold of lock.TryLock is dropped`
	go lock.Lock(ctx, rlock.Lease(lease))                     // want `the hold of lock.Lock is dropped`
	_, _ = multilock.NewOn(client, "a").Lock(ctx, -1)         // want `the hold of multilock.NewOn\(client, "a"\).Lock is dropped`
}

func earlyReturn(ctx context.Context, lock rlock.Locker, done bool) error {
	hold, err := lock.Lock(ctx, rlock.Watchdog) // want `hold is not released on the path to line 37,`
	if err != nil {
		return err
	}
	if done {
		return nil
	}
	return hold.Unlock()
}

func workFails(ctx context.Context, lock rlock.Locker) error {
	hold, err := lock.Lock(ctx, rlock.Watchdog) // want `hold is not released on the path to line 49,`
	if err != nil {
		return err
	}
	err = shop.Bill(hold.Context(), shop.Order{})
	if err != nil {
		return err
	}
	return hold.Unlock()
}

func fallsOff(ctx context.Context, lock rlock.Locker) {
	if hold, err := lock.TryLock(ctx, rlock.NoWait, rlock.Lease(lease)); err == nil { // want `hold is not released on the path to line 58,`
		shop.Ship(hold.Context())
	}
}

func blank(ctx context.Context, lock rlock.Locker) error {
	hold, err := lock.Lock(ctx, rlock.Lease(lease)) // want `hold is not released`
	_ = hold
	return err
}

func everyRound(ctx context.Context, locks []rlock.Locker) error {
	for _, lock := range locks {
		hold, err := lock.Lock(ctx, rlock.Lease(lease)) // want `hold is not released on the path to line 68,`
		if err != nil {
			return err
		}
		shop.Ship(hold.Context())
	}
	return nil
}

func overwritten(ctx context.Context, a, b rlock.Locker) error {
	hold, err := a.Lock(ctx, rlock.Lease(lease)) // want `hold is not released on the path to line 82,`
	if err != nil {
		return err
	}
	hold, err = b.Lock(hold.Context(), rlock.Lease(lease))
	if err != nil {
		return err
	}
	return hold.Unlock()
}

func wrongSwitch(ctx context.Context, lock rlock.Locker) error {
	hold, err := lock.TryLock(ctx, rlock.NoWait, rlock.Lease(lease)) // want `hold is not released on the path to line 97,`
	switch {
	case errors.Is(err, rlock.ErrNotAcquired):
		return nil
	case err != nil:
		return err
	}
	return shop.Bill(hold.Context(), shop.Order{})
}

func attached(ctx context.Context, client *rlock.Client, token string) error {
	hold, err := client.Attach(ctx, token, rlock.Lease(lease)) // want `hold is not released on the path to line 105,`
	if err != nil {
		return err
	}
	return shop.Bill(hold.Context(), shop.Order{})
}

func byWrapper(ctx context.Context, s *store) error {
	if _, err := s.enter(ctx, "a"); err != nil { // want `the hold of s.enter is dropped, so the lock stays held until its lease ends`
		return err
	}
	_, err := s.again(ctx) // want `the hold of s.again is dropped`
	if err != nil {
		return err
	}
	hold, err := locking.Acquire(ctx, "a") // want `hold is not released on the path to line 120`
	if err != nil {
		return err
	}
	return shop.Bill(hold.Context(), shop.Order{})
}

func byInterface(ctx context.Context, l locking.Locking) {
	l.AcquireLock(ctx, "a") // want `the hold of l.AcquireLock is dropped`
	hold, err := l.AcquireLock(ctx, "a")
	if err == nil {
		_ = hold.Unlock()
	}
}

type store struct {
	client  *rlock.Client
	current *rlock.Hold
	holds   map[string]*rlock.Hold
}

func (s *store) enter(ctx context.Context, name string) (*rlock.Hold, error) {
	hold, err := s.client.NewLock(name).Lock(ctx, rlock.Lease(lease))
	if err != nil {
		return nil, errors.Join(errors.New(name), err)
	}
	if hold.Token() < 0 {
		return nil, hold.Unlock()
	}
	return hold, nil
}

func (s *store) again(ctx context.Context) (hold *rlock.Hold, err error) {
	for range 3 {
		if hold, err = s.enter(ctx, "again"); err == nil {
			return
		}
	}
	return nil, err
}

func otherLockUnlocked(ctx context.Context, client *rlock.Client) error {
	a, b := client.NewLock("a"), client.NewLock("b")
	ctx = rlock.WithOwner(ctx)
	if _, err := a.Lock(ctx, rlock.Lease(lease)); err != nil { // want `the hold of a.Lock is dropped`
		return err
	}
	return b.Unlock(ctx)
}

type store2 struct{ lock *rlock.Lock }

// Close releases nothing.
func (s *store2) Close() error { return nil }

func (s *store2) begin(ctx context.Context) error {
	_, err := s.lock.Lock(ctx, rlock.Lease(lease)) // want `the hold of s.lock.Lock is dropped`
	return err
}

func waitsForTheEnd(ctx context.Context, lock rlock.Locker, stop <-chan struct{}) error {
	hold, err := lock.Lock(ctx, rlock.Lease(lease)) // want `hold is not released`
	if err != nil {
		return err
	}
	select {
	case <-hold.Done():
	case <-stop:
	}
	return shop.Bill(hold.Context(), shop.Order{})
}

// What follows is right.

func (s *store) Hold() (*rlock.Hold, error) { return s.current, nil }

func (s *store) lookUp(ctx context.Context, name string) (*rlock.Hold, error) {
	if hold := s.holds[name]; hold != nil {
		return hold, nil
	}
	return nil, errors.New("no hold")
}

func (s *store) cached(ctx context.Context, name string) (*rlock.Hold, error) {
	hold, err := s.enter(ctx, name)
	if err != nil {
		return nil, err
	}
	s.holds[name] = hold
	return hold, nil
}

func (s *store) until(ctx context.Context) (*rlock.Hold, error) {
	hold, err := s.enter(ctx, "until")
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = hold.Unlock() })
	return hold, nil
}

func same(ctx context.Context, hold *rlock.Hold) (*rlock.Hold, error) { return hold, ctx.Err() }

func getters(ctx context.Context, s *store, l locking.Locking) {
	_, _ = s.Hold()
	_, _ = s.lookUp(ctx, "a")
	_, _ = s.cached(ctx, "a")
	_, _ = s.until(ctx)
	_, _ = same(ctx, s.current)
	_, _ = locking.FromContext(ctx)
	_, _ = l.Held("a")
	_, _ = cached(ctx, func() (*rlock.Hold, error) { return s.current, nil })
}

func cached[T any](ctx context.Context, make func() (T, error)) (T, error) { return make() }

// javaStore releases by name.
type javaStore struct{ client *rlock.Client }

func (s javaStore) Acquire(ctx context.Context, name string) (*rlock.Hold, error) {
	return s.client.NewFairLock(name).Lock(ctx, rlock.Lease(lease))
}

func (s *javaStore) Release(ctx context.Context, name string) error {
	return s.client.NewFairLock(name).Unlock(ctx)
}

type javaGuard struct{ fence *rlock.Lock }

func (g *javaGuard) enter(ctx context.Context) (*rlock.Hold, error) {
	return g.fence.Lock(ctx, rlock.Lease(lease))
}
func (g *javaGuard) exit(ctx context.Context) error { return g.fence.Unlock(ctx) }

func byName(ctx context.Context, s *javaStore, g *javaGuard) error {
	_, err := s.Acquire(ctx, "a")
	if err == nil {
		_, err = g.enter(ctx)
	}
	return err
}

func byNameInPlace(ctx context.Context, s *javaStore) error {
	hold, err := s.Acquire(ctx, "a")
	if err != nil {
		return err
	}
	defer func() { _ = s.Release(ctx, "a") }()
	return shop.Bill(hold.Context(), shop.Order{})
}

func released(ctx context.Context, s *store) (err error) {
	hold, err := s.enter(ctx, "a")
	if err != nil {
		return err
	}
	defer hold.UnlockTo(&err)
	other, err := locking.Acquire(ctx, "b")
	if err != nil {
		return err
	}
	defer locking.Put(other)
	return shop.Bill(other.Context(), shop.Order{})
}

func deferred(ctx context.Context, lock rlock.Locker) (err error) {
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	defer hold.UnlockTo(&err)
	return shop.Bill(hold.Context(), shop.Order{})
}

func elseBranch(ctx context.Context, lock rlock.Locker) error {
	if hold, err := lock.Lock(ctx, rlock.Lease(lease)); err != nil {
		return err
	} else {
		return hold.Unlock()
	}
}

func returned(ctx context.Context, lock rlock.Locker) (*rlock.Hold, error) {
	return lock.Lock(ctx, rlock.Lease(lease))
}

func named(ctx context.Context, lock rlock.Locker) (hold *rlock.Hold, err error) {
	hold, err = lock.Lock(ctx, rlock.Lease(lease))
	if err != nil {
		return nil, err
	}
	shop.Ship(hold.Context())
	return
}

type guard struct {
	hold *rlock.Hold
	lock *rlock.Lock
}

func stored(ctx context.Context, lock rlock.Locker) (*guard, error) {
	hold, err := lock.Lock(ctx, rlock.Lease(lease))
	if err != nil {
		return nil, err
	}
	return &guard{hold: hold}, nil
}

func (g *guard) field(ctx context.Context, lock rlock.Locker) (err error) {
	g.hold, err = lock.Lock(ctx, rlock.Lease(lease))
	return err
}

func (g *guard) enter(ctx context.Context) error {
	_, err := g.lock.Lock(ctx, rlock.Lease(lease))
	return err
}

func (g *guard) exit(ctx context.Context) error { return g.lock.Unlock(ctx) }

func closure(ctx context.Context, lock rlock.Locker) (func() error, error) {
	hold, err := lock.Lock(ctx, rlock.Lease(lease))
	if err != nil {
		return nil, err
	}
	return func() error { return hold.Unlock() }, nil
}

func value(ctx context.Context, lock rlock.Locker) (func() error, error) {
	hold, err := lock.Lock(ctx, rlock.Lease(lease))
	if err != nil {
		return nil, err
	}
	release := hold.Unlock
	return release, nil
}

func before(ctx context.Context, lock rlock.Locker) (err error) {
	var hold *rlock.Hold
	defer func() {
		if hold != nil {
			err = errors.Join(err, hold.Unlock())
		}
	}()
	hold, err = lock.Lock(ctx, rlock.Lease(lease))
	return err
}

func fatal(ctx context.Context, lock rlock.Locker) error {
	hold, err := lock.Lock(ctx, rlock.Lease(lease))
	if err != nil {
		log.Fatal(err)
	}
	switch len(os.Args) {
	case 0:
		os.Exit(1)
	case 1:
		panic("no arguments")
	}
	return hold.Unlock()
}

func retried(ctx context.Context, lock rlock.Locker) error {
	var hold *rlock.Hold
	var err error
	for range 3 {
		if hold, err = lock.TryLock(ctx, time.Second, rlock.Lease(lease)); err == nil {
			break
		}
	}
	if err != nil {
		return err
	}
	return hold.Unlock()
}

func untilThere(ctx context.Context, lock rlock.Locker) error {
	hold, err := lock.TryLock(ctx, rlock.NoWait, rlock.Lease(lease))
	for err != nil {
		hold, err = lock.TryLock(ctx, rlock.NoWait, rlock.Lease(lease))
	}
	return hold.Unlock()
}

func byNil(ctx context.Context, lock rlock.Locker) error {
	hold, _ := lock.TryLock(ctx, rlock.NoWait, rlock.Lease(lease))
	if hold == nil {
		return nil
	}
	return hold.Unlock()
}

func byFlag(ctx context.Context, lock rlock.Locker) error {
	hold, err := lock.TryLock(ctx, rlock.NoWait, rlock.Lease(lease))
	busy := errors.Is(err, rlock.ErrNotAcquired)
	if busy {
		return nil
	}
	got := err == nil
	if !got {
		return err
	}
	return hold.Unlock()
}

func byHelper(ctx context.Context, lock rlock.Locker) error {
	hold, err := lock.TryLock(ctx, rlock.NoWait, rlock.Lease(lease))
	if isBusy(err) {
		return nil
	}
	return hold.Unlock()
}

func isBusy(err error) bool { return errors.Is(err, rlock.ErrNotAcquired) }

func wrapped(ctx context.Context, lock rlock.Locker) error {
	hold, err := lock.TryLock(ctx, rlock.NoWait, rlock.Lease(lease))
	if err = wrap(err); err != nil {
		return err
	}
	return hold.Unlock()
}

func wrap(err error) error { return err }

func switches(ctx context.Context, lock rlock.Locker) error {
	hold, err := lock.TryLock(ctx, rlock.NoWait, rlock.Lease(lease))
	switch {
	case err == nil:
		return hold.Unlock()
	case errors.Is(err, rlock.ErrNotAcquired):
		return nil
	default:
		return err
	}
}

func switchOnError(ctx context.Context, lock rlock.Locker) error {
	hold, err := lock.TryLock(ctx, rlock.NoWait, rlock.Lease(lease))
	switch err {
	case nil:
	default:
		return err
	}
	switch err := err.(type) {
	case *rlock.HeldError:
		return err
	case nil:
		return hold.Unlock()
	default:
		return err
	}
}

func maybe(ctx context.Context, lock rlock.Locker, guarded bool) (err error) {
	var hold *rlock.Hold
	if guarded {
		if hold, err = lock.Lock(ctx, rlock.Lease(lease)); err != nil {
			return err
		}
	}
	shop.Ship(ctx)
	if guarded {
		return hold.Unlock()
	}
	return nil
}

func lost(ctx context.Context, lock rlock.Locker, work <-chan int) error {
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	for {
		select {
		case <-hold.Done():
			return hold.Err()
		case _, open := <-work:
			if !hold.Valid() {
				return rlock.ErrLost
			}
			if !open {
				return hold.Unlock()
			}
		}
	}
}

func java(ctx context.Context, lock *rlock.Lock) error {
	ctx = rlock.WithOwner(ctx)
	if _, err := lock.Lock(ctx, rlock.Lease(lease)); err != nil {
		return err
	}
	defer func() { _ = lock.Unlock(ctx) }()
	return shop.Bill(ctx, shop.Order{})
}

func javaByHelper(ctx context.Context, client *rlock.Client) error {
	lock := client.NewLock("order")
	ctx = rlock.WithOwner(ctx)
	if _, err := lock.Lock(ctx, rlock.Lease(lease)); err != nil {
		return err
	}
	defer quietly(ctx, lock)
	return shop.Bill(ctx, shop.Order{})
}

func quietly(ctx context.Context, lock *rlock.Lock) { _ = lock.Unlock(ctx) }

func throttled(ctx context.Context, lock rlock.Locker) (bool, error) {
	hold, err := lock.TryLock(ctx, rlock.NoWait, rlock.Lease(time.Hour))
	if err != nil {
		return false, err
	}
	hold.Leave()
	return true, nil
}

func detached(ctx context.Context, lock rlock.Locker) (string, error) {
	hold, err := lock.TryLock(ctx, rlock.NoWait, rlock.Lease(time.Hour))
	if err != nil {
		return "", err
	}
	return hold.Detach()
}

func all(ctx context.Context, locks []rlock.Locker) (err error) {
	var holds []*rlock.Hold
	for _, lock := range locks {
		hold, err := lock.Lock(ctx, rlock.Lease(lease))
		if err != nil {
			break
		}
		holds = append(holds, hold)
	}
	for _, hold := range holds {
		err = errors.Join(err, hold.Unlock())
	}
	return err
}

func handed(ctx context.Context, lock rlock.Locker, out chan<- *rlock.Hold) error {
	hold, err := lock.Lock(ctx, rlock.Lease(lease))
	if err != nil {
		return err
	}
	out <- hold
	return nil
}

func silenced(ctx context.Context, lock rlock.Locker) error {
	//holdfastvet:ignore unreleased the lease is the quota
	_, err := lock.Lock(ctx, rlock.Lease(lease))
	return err
}

func generic(ctx context.Context, lock rlock.Locker) {
	hold := must(lock.Lock(ctx, rlock.Lease(lease))) // want `hold is not released`
	shop.Ship(hold.Context())
	other := must(lock.Lock(ctx, rlock.Lease(lease)))
	_ = other.Unlock()
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// session is released by its owner, in Close.
type session struct {
	ctx    context.Context
	client *rlock.Client
	lock   *rlock.Lock
	name   string
}

func open(ctx context.Context, client *rlock.Client) (*session, error) {
	ctx, lock := rlock.WithOwner(ctx), client.NewLock("session")
	if _, err := lock.Lock(ctx, rlock.Watchdog); err != nil {
		return nil, err
	}
	return &session{ctx: ctx, lock: lock}, nil
}

func (s *session) begin(ctx context.Context) error {
	_, err := s.client.NewLock("session:"+s.name).Lock(ctx, rlock.Watchdog)
	return err
}

func (s *session) claim(ctx context.Context) (*rlock.Hold, error) {
	return s.client.NewLock("session:"+s.name).Lock(ctx, rlock.Watchdog)
}

func (s *session) Close() error {
	lock := s.lock
	return lock.Unlock(s.ctx)
}

func closed(ctx context.Context, s *session) error {
	hold, err := s.lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	defer s.Close()
	return shop.Bill(hold.Context(), shop.Order{})
}

func claimed(ctx context.Context, s *session) error {
	if _, err := s.claim(ctx); err != nil {
		return err
	}
	hold, err := s.claim(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	return shop.Bill(hold.Context(), shop.Order{})
}

type factory struct{ client *rlock.Client }

func (f factory) another(ctx context.Context) (*rlock.Hold, error) {
	return f.client.NewLock("another").Lock(ctx, rlock.Watchdog)
}

func (s *session) another() (*rlock.Hold, error) { return factory{s.client}.another(s.ctx) }

func claimedElsewhere(s *session) error {
	_, err := s.another()
	return err
}

// leads returns a channel that is closed when the lock is lost. The hold is kept by it.
func leads(ctx context.Context, lock rlock.Locker) (<-chan struct{}, error) {
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return nil, err
	}
	return hold.Done(), nil
}

func leadsByVariable(ctx context.Context, lock rlock.Locker) (<-chan struct{}, error) {
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return nil, err
	}
	done := hold.Done()
	return done, nil
}

type leader struct {
	ctx  context.Context
	lost <-chan struct{}
}

func (l *leader) elect(ctx context.Context, lock rlock.Locker) error {
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	l.ctx, l.lost = hold.Context(), hold.Done()
	return nil
}

func elected(ctx context.Context, lock rlock.Locker, to chan<- leader) error {
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	if err == nil {
		to <- leader{lost: hold.Done()}
	}
	return err
}
