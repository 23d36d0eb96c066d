//go:build !race

package multilock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/multilock"
	"holdfast/rlock"
)

// own is a lock of its user's own type, with or without a plain lock behind it.
type own struct {
	name, server string
	inner        rlock.Locker
	does         func(method string) error // what a method does besides
	held         []*ownAcquisition
}

func (o *own) Name() string                 { return o.name }
func (o *own) Server() string               { return o.server }
func (o *own) Unlock(context.Context) error { return rlock.ErrNotHeld }

func (o *own) Lock(ctx context.Context, lease rlock.Lease) (*rlock.Hold, error) {
	return o.TryLock(ctx, rlock.Forever, lease)
}

var errNothing = errors.New("return nothing at all")

func (o *own) TryLock(
	ctx context.Context,
	wait time.Duration,
	lease rlock.Lease,
) (*rlock.Hold, error) {
	if err := o.does("Lock"); errors.Is(err, errNothing) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	a := &ownAcquisition{own: o}
	if o.inner != nil {
		var err error
		a.inner, err = o.inner.TryLock(ctx, wait, lease)
		if err != nil {
			return nil, err
		}
	}
	a.hold, a.end = rlock.NewHold(ctx, a)
	o.held = append(o.held, a)
	return a.hold, nil
}

type ownAcquisition struct {
	*own
	inner, hold *rlock.Hold
	end         func(error)
}

func (a *ownAcquisition) Owner() string { return "me" }
func (a *ownAcquisition) Token() int64  { return 0 }

func (a *ownAcquisition) Deadline() time.Time {
	if a.inner != nil {
		return a.inner.Deadline()
	}
	return time.Now().Add(time.Hour)
}

func (a *ownAcquisition) Extend(ctx context.Context, lease rlock.Lease) error {
	err := a.does("Extend")
	if err == nil && a.inner != nil {
		err = a.inner.Extend(ctx, lease)
	}
	return err
}

func (a *ownAcquisition) Release(h *rlock.Hold) error {
	if h != a.hold {
		return errors.New("this is not the hold that the Locker has made")
	}
	defer a.end(rlock.ErrReleased)
	if a.inner != nil {
		defer func() { _ = a.inner.Unlock() }()
	}
	return a.does("Release")
}

func TestLockersOfAnotherTypeMayBeParts(t *testing.T) {
	t.Parallel()
	inPair(t, rlock.Options{}, func(t *testing.T, p *pair) {
		var asked []string
		named := func(name, server string) *own {
			return &own{name: name, server: server, does: func(method string) error {
				asked = append(asked, method+" "+name)
				return nil
			}}
		}
		f, g := named("f", "first"), named("g", "third")
		lock := multilock.New(g, p.client.NewLock("z"), p.another.NewLock("b"), f, g,
			multilock.New(f, p.client.NewLock("a")))
		hold := take(t, lock, longLease)
		require.Equal(t, []string{"Lock f", "Lock g"}, asked,
			"each once, in the order of servers and names")
		require.NoError(t, lock.Unlock(hold.Context()))
		require.ElementsMatch(t, []string{"Release f", "Release g"}, asked[2:])
		p.requireFree(t)

		hold = take(t, lock, longLease)
		f.held[1].end(&rlock.LostError{Lock: "f", Reason: errors.New("the dog ate it")})
		requireLost(t, hold.Err(), "f", "the dog ate it")
		require.Equal(t, []string{"a", "b", "z"}, left(t, p.first, p.second))
		require.NoError(t, hold.Unlock(), "the locker reports no error")
		p.requireFree(t)
	})
}

func TestErrorsOfLockersOfAnotherTypeAreReturned(t *testing.T) {
	t.Parallel()
	inPair(t, rlock.Options{}, func(t *testing.T, p *pair) {
		var in string
		paper := errors.New("no paper left")
		f := &own{name: "f", server: "a server before all others", does: func(method string) error {
			if method == in {
				return paper
			}
			return nil
		}}
		lock := multilock.New(p.another.NewLock("b"), p.client.NewLock("a"), f)
		in = "Lock"
		_, err := lock.TryLock(t.Context(), time.Minute, longLease)
		require.ErrorIs(t, err, paper)
		in = "Release"
		require.ErrorIs(t, take(t, lock, longLease).Unlock(), paper)
		p.requireFree(t)

		// It is held when a later part is refused, and the error says that it stays held.
		theirs := take(t, p.another.NewLock("b"), longLease)
		_, err = lock.TryLock(t.Context(), rlock.NoWait, longLease)
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
		require.ErrorIs(t, err, paper)
		require.ErrorContains(t, err, "not released after this error")
		unlock(t, theirs)

		f.does = func(string) error { return errNothing }
		_, err = lock.TryLock(t.Context(), rlock.NoWait, longLease)
		require.ErrorContains(t, err,
			`lock "f": its Locker (*multilock_test.own) returned neither a hold nor an error`)
		p.requireFree(t)
	})
}

// Where a lock without a server's name is, is not known, nested or not.
func TestLocksOfUnknownServersAreRefusedAlsoIfTheyAreNested(t *testing.T) {
	a, b := &own{name: "a"}, &own{name: "b"}
	for _, lock := range []*multilock.Lock{multilock.New(a, b),
		multilock.New(multilock.New(a), multilock.New(b)), multilock.New(a, multilock.New(b))} {
		_, err := lock.TryLock(t.Context(), rlock.NoWait, rlock.Lease(time.Minute))
		require.ErrorIs(t, err, rlock.ErrInvalid)
	}
}

// A part of a user's own type may panic, or end the goroutine. So does the call then, and no part
// stays locked, or is renewed.
func TestPartsAreFreeAfterAPartHasEndedACall(t *testing.T) {
	t.Parallel()
	inPair(t, rlock.Options{}, func(t *testing.T, p *pair) {
		first, inner, last := p.client.NewLock("a"), p.client.NewLock("m"), p.client.NewLock("z")
		for _, in := range []string{"Lock", "Extend", "Release"} {
			for how, end := range locktest.Ends {
				for _, wait := range []time.Duration{rlock.NoWait, time.Hour, rlock.Forever} {
					once := true
					part := &own{name: "m", server: "first", inner: inner, does: func(m string) error {
						if once && m == in {
							once = false
							end()
						}
						return nil
					}}
					require.Equal(t, how, locktest.EndOf(t, func() {
						hold, err := multilock.New(first, part, last).
							TryLock(t.Context(), wait, rlock.Watchdog)
						if err == nil {
							defer func() { _ = hold.Unlock() }()
							err = hold.Extend(t.Context(), rlock.Lease(time.Hour))
						}
						if err != nil {
							t.Error(in, how, err)
						}
					}))
					require.False(t, once, "the method was not called")
					p.requireFree(t)
				}
			}
		}
	})
}

// While a call waits for a part, another goroutine extends the parts that it has. A panic of one of
// those is the caller's, and does not end the process.
func TestCallerGetsThePanicOfAPartThatIsExtendedWhileItWaits(t *testing.T) {
	t.Parallel()
	inPair(t, rlock.Options{}, func(t *testing.T, p *pair) {
		theirs := take(t, p.client.NewLock("z"), longLease)
		part := &own{name: "m", server: "first", inner: p.client.NewLock("m")}
		part.does = func(method string) error {
			if method == "Extend" {
				locktest.Ends["panic"]()
			}
			return nil
		}
		require.Equal(t, "panic", locktest.EndOf(t, func() {
			_, err := multilock.New(p.client.NewLock("a"), part, p.client.NewLock("z")).
				TryLock(t.Context(), 2*time.Second, rlock.Lease(3*time.Second))
			t.Error(err)
		}))
		unlock(t, theirs)
		p.requireFree(t)
	})
}
