//go:build !race

package redlock_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/internal/suite"
	"holdfast/redlock"
	"holdfast/rlock"
)

// scripts returns how many scripts the servers were asked to run during d.
func (w *world) scripts(t *testing.T, d time.Duration) (n int) {
	t.Helper()
	for _, s := range w.Servers {
		suite.Asked(t, s)
	}
	time.Sleep(d)
	for _, s := range w.Servers {
		scripts, _ := suite.Asked(t, s)
		n += scripts
	}
	return n
}

// The holder has a bare quorum. The waiters get the other nodes again and again, and hear their own
// and each other's releases there.
func TestWaiterSendsNothingWhileItWaitsAndIsWokenByTheRelease(t *testing.T) {
	t.Parallel()
	for _, held := range []int{3, 5} {
		inWorld(t, 5, rlock.Options{}, func(t *testing.T, w *world) {
			give(t, w.Servers[:held]...)
			other := redlock.NewOn(name, atOnce, w.party(t, rlock.Options{})...)
			first := lockInBackground(t.Context(), w.lock, longLease)
			second := lockInBackground(t.Context(), other, longLease)
			time.Sleep(time.Second)
			// A waiter asks by itself every 5 s.
			require.Zero(t, w.scripts(t, 3*time.Second))
			giveBack(t, w.Servers[:held]...)
			start, ended := time.Now(), make(chan error, 2)
			for _, waiter := range []<-chan locktest.Outcome{first, second} {
				go func() {
					o := <-waiter
					if o.Err == nil {
						o.Err = o.Hold.Unlock()
					}
					ended <- o.Err
				}()
			}
			require.NoError(t, <-ended)
			require.NoError(t, <-ended)
			require.Less(t, time.Since(start), time.Second)
			w.RequireNothingLeft(t)
		})
	}
}

// With two nodes down a round is lost at the first refusal.
func TestWaiterDoesNotPollWhileAMinorityHangs(t *testing.T) {
	t.Parallel()
	inWorld(t, 5, rlock.Options{}, func(t *testing.T, w *world) {
		unlock(t, take(t, w.lock, longLease))
		synctest.Wait()
		give(t, w.Servers[:3]...)
		w.Servers[3].Pause(t)
		w.Servers[4].Pause(t)
		waiter := lockInBackground(t.Context(), w.lock, longLease)
		time.Sleep(4 * time.Second)
		w.Servers[3].Resume(t)
		w.Servers[4].Resume(t)
		time.Sleep(time.Millisecond)
		require.LessOrEqual(t, w.scripts(t, 3*time.Second), 10)
		giveBack(t, w.Servers[:3]...)
		start := time.Now()
		unlock(t, acquired(t, waiter))
		require.Less(t, time.Since(start), time.Second)
		w.RequireNothingLeft(t)
	})
}

// The nodes of a queue are in the order of its first lock.
func TestReleaseWakesAWaiterWhateverTheOrderOfItsNodes(t *testing.T) {
	t.Parallel()
	inWorld(t, 5, rlock.Options{}, func(t *testing.T, w *world) {
		backwards := slices.Clone(w.clients)
		slices.Reverse(backwards)
		give(t, w.Servers[:3]...)
		ctx, cancel := context.WithCancel(t.Context())
		head := lockInBackground(ctx, w.lock, longLease)
		synctest.Wait()
		second := lockInBackground(t.Context(), redlock.NewOn(name, atOnce, backwards...), longLease)
		synctest.Wait()
		cancel()
		require.Error(t, result(t, head).Err)
		time.Sleep(time.Second)
		giveBack(t, w.Servers[:3]...)
		start := time.Now()
		unlock(t, acquired(t, second))
		require.Less(t, time.Since(start), time.Second)
		w.RequireNothingLeft(t)
	})
}

func TestWaiterOfWhichAMinorityIsClosedIsStillWoken(t *testing.T) {
	t.Parallel()
	inWorld(t, 5, rlock.Options{}, func(t *testing.T, w *world) {
		hold := w.takeOnAll(t, longLease)
		mine := w.party(t, rlock.Options{})
		waiter := lockInBackground(t.Context(), redlock.NewOn(name, atOnce, mine...), longLease)
		time.Sleep(time.Second)
		closeClient(t, mine[0])
		closeClient(t, mine[3])
		time.Sleep(time.Second)
		start := time.Now()
		unlock(t, hold)
		unlock(t, acquired(t, waiter))
		require.Less(t, time.Since(start), time.Second)
		w.RequireNothingLeft(t)
	})
}
