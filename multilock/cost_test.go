//go:build !race

package multilock_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/multilock"
	"holdfast/rlock"
)

// Of a, b, c and so on, c is fair; a and b are on another server, too.
func TestNeighbouringPlainLocksOfAClientAreOneCommand(t *testing.T) {
	t.Parallel()
	inPair(t, rlock.Options{}, func(t *testing.T, p *pair) {
		c := p.client
		locks := []rlock.Locker{c.NewLock("e"), c.NewLock("b"), c.NewFairLock("c"), c.NewLock("d"),
			c.NewLock("a"), p.another.NewLock("a"), p.another.NewLock("b")}
		plain := multilock.New(locks[0], locks[1], locks[4])
		mixed := multilock.New(locks...)
		learn(t, plain, locks...)
		learn(t, mixed)
		p.asked(t)
		for _, x := range []struct {
			lock             *multilock.Lock
			acquire, release [2]int // on each server
		}{
			{plain, [2]int{1, 0}, [2]int{1, 0}},
			{mixed, [2]int{3, 1}, [2]int{2, 1}}, // a and b, c, d and e; c, and all others
		} {
			requireAsked := func(want [2]int) {
				t.Helper()
				first, second := p.asked(t)
				require.Equal(t, want, [2]int{first, second})
			}
			hold := take(t, x.lock, rlock.Watchdog)
			requireAsked(x.acquire)
			inner, err := x.lock.TryLock(hold.Context(), rlock.NoWait, longLease)
			require.NoError(t, err)
			requireAsked(x.acquire)
			unlock(t, inner)
			requireAsked(x.release)
			unlock(t, hold)
			requireAsked(x.release)
			p.requireFree(t)
		}
	})
}

func TestOnePartInTheWayIsWaitedForByItself(t *testing.T) {
	t.Parallel()
	inPair(t, rlock.Options{}, func(t *testing.T, p *pair) {
		c := p.client
		theirs := take(t, c.NewLock("b"), longLease)
		waiter := lockInBackground(t.Context(),
			multilock.New(c.NewLock("a"), c.NewLock("b"), c.NewLock("c")), rlock.Watchdog)
		eventually(t, func() bool { return levels(t, p.first, "a") == "1" }, "a is held meanwhile")
		unlock(t, take(t, c.NewLock("c"), longLease)) // it is free for others
		unlock(t, theirs)
		unlock(t, acquired(t, waiter))
		p.requireFree(t)
	})
}
