package locktest

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// Wanderer does with locks at random what callers may do: it shares its owners with other
// goroutines, nests, releases in any order, and forgets holds that have a lease.
type Wanderer struct {
	Pairs  *Pairs
	Locks  []rlock.Locker
	Owners []context.Context
	Random *rand.Rand

	holds []wandererHold
}

type wandererHold struct {
	*rlock.Hold
	lock  rlock.Locker
	lease time.Duration
}

// Run wanders until ctx ends.
func (w *Wanderer) Run(ctx context.Context) {
	for ctx.Err() == nil {
		if len(w.holds) < 3 && w.Random.IntN(2) == 0 {
			w.acquire(ctx)
		} else if len(w.holds) > 0 {
			w.end()
		}
	}
	for len(w.holds) > 0 {
		w.unlock(w.holds[0])
	}
}

func (w *Wanderer) upTo(d time.Duration) time.Duration {
	return time.Duration(w.Random.Int64N(int64(d)))
}

// acquire tries to acquire a lock, for nobody in particular, a shared owner, or that of a hold.
func (w *Wanderer) acquire(ctx context.Context) {
	from, lock := context.Background(), w.Locks[w.Random.IntN(len(w.Locks))]
	switch n := w.Random.IntN(4); {
	case n == 0:
		from = w.Owners[w.Random.IntN(len(w.Owners))]
	case n < 3 && len(w.holds) > 0:
		outer := w.holds[w.Random.IntN(len(w.holds))]
		if from = context.WithoutCancel(outer.Context()); n == 1 {
			lock = outer.lock
		}
	}
	from, cancel := context.WithTimeout(from, time.Second)
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	lease := rlock.Watchdog
	if w.Random.IntN(2) == 0 {
		lease = 5*time.Millisecond + w.upTo(100*time.Millisecond)
	}
	wait := rlock.NoWait
	switch w.Random.IntN(4) {
	case 0:
		time.AfterFunc(w.upTo(20*time.Millisecond), cancel)
		wait = rlock.Forever
	case 1, 2:
		wait = w.upTo(30 * time.Millisecond)
	}
	hold, err := lock.TryLock(from, wait, lease)
	if err != nil {
		return
	}
	w.holds = append(w.holds, wandererHold{hold, lock, lease})
}

// end ends one of the holds, perhaps by another name.
func (w *Wanderer) end() {
	h := w.holds[w.Random.IntN(len(w.holds))]
	switch w.Random.IntN(12) {
	case 0:
		if h.lease > 0 {
			h.Leave()
			w.forget(h)
		}
	case 1:
		_ = h.Extend(context.Background(), time.Millisecond*5+w.upTo(50*time.Millisecond))
	case 2:
		_ = h.lock.Unlock(h.Context())
	case 3:
		if _, err := h.Detach(); err == nil {
			w.forget(h)
		}
	case 4:
		if h.lease > 0 { // and runs out
			w.forget(h)
		}
	default:
		w.unlock(h)
	}
}

func (w *Wanderer) unlock(h wandererHold) {
	w.Pairs.Unlocked(h.Hold, h.Unlock(context.Background()))
	w.forget(h)
}

func (w *Wanderer) forget(h wandererHold) {
	w.holds = slices.DeleteFunc(w.holds, func(other wandererHold) bool { return other.Hold == h.Hold })
}

// LoseKeys deletes one of some keys again and again until ctx ends, with pauses of up to longest.
func LoseKeys(ctx context.Context, t testing.TB, s *redistest.Server, random *rand.Rand,
	longest time.Duration, keys ...string,
) {
	t.Helper()
	for ctx.Err() == nil {
		select {
		case <-time.After(time.Duration(random.Int64N(int64(longest)))):
		case <-ctx.Done():
		}
		if _, err := s.Call("DEL", keys[random.IntN(len(keys))]); err != nil {
			t.Error(err)
		}
	}
}
