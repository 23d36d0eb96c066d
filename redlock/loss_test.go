//go:build !race

package redlock_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/compose"
	"holdfast/redlock"
	"holdfast/rlock"
)

func TestLossOnAMinorityChangesNothingAndOnAThirdNodeEndsTheHold(t *testing.T) {
	t.Parallel()
	inWorld(t, 5, rlock.Options{}, func(t *testing.T, w *world) {
		hold := w.takeOnAll(t, rlock.Watchdog)
		give(t, w.Servers[:2]...) // so that the nodes cannot join again
		time.Sleep(10 * time.Minute)
		require.True(t, hold.Valid(), "%v", hold.Err())
		give(t, w.Servers[2])
		time.Sleep(20 * time.Second)
		requireLost(t, hold, "held on 2 of 5 nodes, 3 are needed; a", "b: ", "; c: ")
		require.Equal(t, 3, w.held(t), "only by the others")
	})
}

// Another owner may have had the lock between the loss of a node and the moment it joined again.
func TestNodeThatJoinsAgainDoesNotHideThatAQuorumWasLost(t *testing.T) {
	t.Parallel()
	for range 10 { // the second node must tell before the first one is renewed, as in every other run
		inWorld(t, 3, rlock.Options{}, func(t *testing.T, w *world) {
			hold := w.takeOnAll(t, rlock.Watchdog)
			for _, s := range w.Servers[1:] {
				s.Do(t, "DEL", name)
			}
			unlock(t, take(t, redlock.NewOn(name, atOnce, w.party(t, rlock.Options{})...), longLease))
			require.True(t, hold.Valid(), "no renewal has told")
			w.delay(2, 4*time.Second)
			time.Sleep(20 * time.Second) // the second node joins again before the third one tells
			requireLost(t, hold, "held on 1 of 3 nodes, 2 are needed; b", "c: ")
		})
	}
}

// The other nodes confirm the lock as soon as one has joined again, not only at their next renewal.
func TestNodesMayLoseTheLockOneAfterTheOther(t *testing.T) {
	t.Parallel()
	inWorld(t, 3, rlock.Options{WatchdogLease: 9 * time.Second}, func(t *testing.T, w *world) {
		hold := w.takeOnAll(t, rlock.Watchdog)
		for range 5 {
			for _, s := range w.Servers {
				s.Do(t, "DEL", name)
				eventually(t, func() bool { return w.held(t) == 3 }, "the node joins again")
				require.True(t, hold.Valid(), "%v", hold.Err())
			}
		}
		unlock(t, hold)
	})
}

// Until the third node grants its part, every loss is one too many.
func TestNodeThatGrantsLateDoesNotHideThatAQuorumWasLost(t *testing.T) {
	t.Parallel()
	for _, before := range []bool{true, false} {
		inWorld(t, 3, rlock.Options{}, func(t *testing.T, w *world) {
			w.Servers[2].Pause(t)
			hold := take(t, w.lock, rlock.Watchdog)
			time.Sleep(2 * time.Second)
			if before {
				w.Servers[1].Do(t, "DEL", name)
			}
			w.Servers[2].Resume(t)
			synctest.Wait()
			if !before {
				w.Servers[1].Do(t, "DEL", name)
				time.Sleep(time.Minute)
				require.True(t, hold.Valid(), "%v", hold.Err())
				unlock(t, hold)
				return
			}
			requireLost(t, hold, "held on 1 of 3 nodes, 2 are needed; b", "; c: lost, and acquired")
		})
	}
}

// Three of five nodes lose their parts, but never at the same time.
func TestNodeThatTellsLateDoesNotEndAHoldThatAlwaysHadAQuorum(t *testing.T) {
	t.Parallel()
	inWorld(t, 5, rlock.Options{}, func(t *testing.T, w *world) {
		hold := w.takeOnAll(t, rlock.Watchdog)
		w.Servers[0].Do(t, "DEL", name)
		w.delay(0, time.Minute)
		for _, s := range w.Servers[1:3] {
			s.Do(t, "DEL", name)
			for s.Do(t, "EXISTS", name) == int64(0) {
				time.Sleep(10 * time.Millisecond) // until it joins again
			}
			synctest.Wait()
		}
		w.delay(0, 0)
		synctest.Wait()
		require.True(t, hold.Valid(), "%v", hold.Err())
		unlock(t, hold)
	})
}

func TestLossThatTheCloseOfOneClientCompletesIsALoss(t *testing.T) {
	t.Parallel()
	inWorld(t, 5, rlock.Options{}, func(t *testing.T, w *world) {
		hold := w.takeOnAll(t, longLease)
		for _, s := range w.Servers[:2] {
			s.Do(t, "DEL", name)
		}
		require.NoError(t, hold.Extend(t.Context(), longLease), "it finds out")
		synctest.Wait()
		require.Equal(t, 3, w.lock.Parts(hold))
		require.True(t, hold.Valid())
		w.Servers[2].Do(t, "DEL", name)
		closeClient(t, w.clients[3])
		require.NotErrorIs(t, hold.Err(), rlock.ErrClosed)
		requireLost(t, hold, "held on 2 of 5 nodes", "; d: ")
	})
}

func TestNodeThatMissedTheAcquisitionJoinsAtARenewalUnderANewName(t *testing.T) {
	t.Parallel()
	inWorld(t, 5, rlock.Options{}, func(t *testing.T, w *world) {
		give(t, w.Servers[:2]...)
		hold := take(t, w.lock, rlock.Watchdog)
		synctest.Wait()
		require.Equal(t, 3, w.lock.Parts(hold))
		for _, s := range w.Servers[:2] {
			s.Do(t, "DEL", name)
		}
		time.Sleep(15 * time.Second)
		require.Equal(t, 5, w.lock.Parts(hold))
		for i, s := range w.Servers {
			owner := s.Do(t, "HKEYS", name).([]any)[0]
			require.Equal(t, i < 2, owner != hold.Owner(),
				"that name may have been given up on the first nodes")
		}
		give(t, w.Servers[2:4]...) // the nodes that joined are renewed as well
		time.Sleep(10 * time.Minute)
		require.True(t, hold.Valid(), "%v", hold.Err())
		unlock(t, hold)
		require.Equal(t, 2, w.held(t), "only by the others")
	})
}

// The process was stopped, or is very busy: the passed deadline is not reported yet.
func TestNothingRevivesAHoldWhoseLossIsNotReportedYet(t *testing.T) {
	t.Parallel()
	const lease = 3 * time.Second
	inWorld(t, 5, rlock.Options{WatchdogLease: lease}, func(t *testing.T, w *world) {
		give(t, w.Servers[3:]...)
		hold := take(t, w.lock, rlock.Watchdog)
		synctest.Wait()
		require.Equal(t, 3, w.lock.Parts(hold))

		// The third node cannot be reached any more, and its client's watchdog is busy.
		busy := take(t, w.clients[2].NewLock("busy"), rlock.Lease(time.Second))
		w.Servers[2].Pause(t)
		unblock := make(chan struct{})
		rlock.Internals(compose.Access{}).OnEnd(busy, func(error) { <-unblock })
		time.Sleep(time.Until(hold.Deadline()))
		require.False(t, hold.Valid())
		for _, s := range w.Servers[3:] {
			s.Do(t, "DEL", name)
		}
		for range 100 {
			time.Sleep(lease / 50)
			require.False(t, hold.Valid(), "a node that joined revived it")
		}
		require.ErrorIs(t, hold.Unlock(), rlock.ErrLost)
		close(unblock)
	})
}

// The session outlives the lost acquisition, because the second call waits for it.
func TestCallThatWaitedForOneThatLearnedOfALossAcquiresTheLockAnew(t *testing.T) {
	t.Parallel()
	inBubble(t, atOnce, func(t *testing.T, b *bubble) {
		for _, n := range b.nodes[:3] {
			n.reply("reenter.lua", func([]string) any { time.Sleep(time.Second); return 0 })
		}
		owner := rlock.WithOwner(t.Context())
		lost := takeWith(owner, t, b.lock, longLease)
		synctest.Wait() // for all nodes
		first := lockInBackground(owner, b.lock, longLease)
		synctest.Wait()
		second := lockInBackground(owner, b.lock, longLease)
		require.ErrorIs(t, result(t, first).Err, rlock.ErrLost)
		hold := acquired(t, second)
		require.NotEqual(t, lost.Owner(), hold.Owner())
		unlock(t, hold)
		require.ErrorIs(t, lost.Unlock(), rlock.ErrLost)
	})
}

// A refusal is no release with a lost reply.
func TestUnlockOfWhatIsGoneSaysSoAlsoWhenTheNodeRefusedAtFirst(t *testing.T) {
	t.Parallel()
	inBubble(t, atOnce, func(t *testing.T, b *bubble) {
		hold := take(t, b.lock, longLease)
		synctest.Wait()
		for i, n := range b.nodes[:3] {
			busy := i == 2
			n.reply("release.lua", func([]string) any {
				if busy {
					busy = false
					return errors.New("BUSY running a script")
				}
				return -1
			})
		}
		err := hold.Unlock()
		require.ErrorIs(t, err, rlock.ErrLost)
		require.ErrorContains(t, err, "c")
		require.Len(t, b.nodes[2].called("release.lua"), 2)
	})
}

// It checks all that is in use in this process, so it does not run beside other tests.
func TestNothingIsInUseWhenEverythingIsReleased(t *testing.T) {
	inWorld(t, 5, rlock.Options{}, func(t *testing.T, w *world) {
		hold := take(t, w.lock, rlock.Watchdog)
		nested := takeWith(hold.Context(), t, w.lock, longLease)
		waiter := lockInBackground(t.Context(), w.lock, rlock.Watchdog)
		for _, wait := range []time.Duration{rlock.NoWait, time.Second} {
			_, err := w.lock.TryLock(t.Context(), wait, longLease)
			require.ErrorIs(t, err, rlock.ErrNotAcquired)
		}
		unlock(t, hold)
		unlock(t, nested)
		lost := acquired(t, waiter)
		give(t, w.Servers[:3]...)
		time.Sleep(20 * time.Second)
		requireLost(t, lost)
		for _, s := range w.Servers[:3] {
			s.Do(t, "DEL", name)
			s.Pause(t)
		}
		_, err := w.lock.TryLock(t.Context(), rlock.NoWait, longLease)
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		for _, s := range w.Servers[:3] {
			s.Resume(t)
		}
		w.RequireNothingLeft(t)
		open, waiting := redlock.InUse()
		require.Zero(t, open)
		require.Zero(t, waiting)
	})
}
