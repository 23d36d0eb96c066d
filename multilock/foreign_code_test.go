package multilock_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
	"holdfast/multilock"
	"holdfast/rlock"
)

// rude is a plain lock of its user that keeps no promise in one of its methods, once.
type rude struct {
	rlock.Locker
	name string
	in   string // the method
	end  atomic.Pointer[func()]
}

func (r *rude) Name() string { return r.name }

// Server orders the part among those of its server by its name, so that others are held before it.
func (r *rude) Server() string { return r.Locker.(*rlock.Lock).Server() }

func (r *rude) reach(method string) {
	if r.in == method {
		if end := r.end.Swap(nil); end != nil {
			(*end)()
		}
	}
}

func (r *rude) Lock(ctx context.Context, lease time.Duration) (*rlock.Hold, error) {
	return r.TryLock(ctx, rlock.Forever, lease)
}

func (r *rude) TryLock(ctx context.Context, wait, lease time.Duration) (*rlock.Hold, error) {
	r.reach("Lock")
	if r.in == "nothing" {
		return nil, nil
	}
	hold, err := r.Locker.TryLock(ctx, wait, lease)
	if err != nil {
		return nil, err
	}
	a := &rudeAcquisition{Hold: hold, rude: r}
	whole, end := rlock.NewHold(ctx, a)
	a.end = end
	return whole, nil
}

type rudeAcquisition struct {
	*rlock.Hold
	*rude
	end func(error)
}

func (a *rudeAcquisition) Name() string { return a.name }

func (a *rudeAcquisition) Extend(ctx context.Context, lease time.Duration) error {
	a.reach("Extend")
	return a.Hold.Extend(ctx, lease)
}

func (a *rudeAcquisition) Release(*rlock.Hold) error {
	defer a.end(rlock.ErrReleased)
	defer func() { _ = a.Unlock(context.Background()) }()
	a.reach("Release")
	return nil
}

// A part of a user's own type may panic, or end the goroutine. So does the call then, and no part
// stays locked, or is renewed.
func TestPartsAreFreeAfterAPartHasEndedACall(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for _, in := range []string{"Lock", "Extend", "Release"} {
		for how, end := range locktest.Ends {
			for wait, limit := range map[string]time.Duration{
				"NoWait": rlock.NoWait, "a wait": time.Hour, "Forever": rlock.Forever,
			} {
				t.Run(in+" "+how+" "+wait, func(t *testing.T) {
					c := newClient(t, s, rlock.Options{})
					first, last := c.NewLock("a"), c.NewLock("z")
					part := &rude{Locker: c.NewLock("m"), name: "m", in: in}
					part.end.Store(&end)
					whole := multilock.New(first, part, last)
					require.Equal(t, how, locktest.EndOf(t, func() {
						hold, err := whole.TryLock(t.Context(), limit, rlock.Watchdog)
						if err != nil {
							t.Error(err)
							return
						}
						defer func() { _ = hold.Unlock(t.Context()) }()
						if in == "Extend" {
							t.Error(hold.Extend(t.Context(), time.Hour))
						}
					}))
					require.Nil(t, part.end.Load(), "the method was not called")
					for _, l := range []rlock.Locker{first, part.Locker, last} {
						hold, err := l.TryLock(t.Context(), locktest.Timeout, rlock.Watchdog)
						require.NoError(t, err)
						require.NoError(t, hold.Unlock(t.Context()))
					}
				})
			}
		}
	}
}

func TestPartThatReturnsNothingIsNamed(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{})
	part := &rude{Locker: c.NewLock("m"), name: "m", in: "nothing"}
	whole := multilock.New(c.NewLock("a"), part)
	for _, limit := range []time.Duration{rlock.NoWait, time.Second, rlock.Forever} {
		_, err := whole.TryLock(t.Context(), limit, rlock.Watchdog)
		require.ErrorContains(t, err,
			`lock "m": its Locker (*multilock_test.rude) returned neither a hold nor an error`)
		require.EqualValues(t, 0, s.DoInt(t, "EXISTS", "a"))
	}
}
