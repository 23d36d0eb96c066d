//go:build redis

package multilock_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/multilock"
	"holdfast/rlock"
	"holdfast/watchdog"
)

// The wait takes twice as long as the lease.
func TestPartIsKeptWhileAnotherIsWaitedForAndNeverForLongerThanTheLease(t *testing.T) {
	t.Parallel()
	const lease = 3 * time.Second
	p := startPair(t, rlock.Options{})
	for name, locks := range map[string][]*rlock.Lock{
		"plain": {p.client.NewLock("a"), p.client.NewLock("b")},
		"fair":  {p.another.NewFairLock("a"), p.another.NewFairLock("b")},
	} {
		s := map[string]*redistest.Server{"plain": p.first, "fair": p.second}[name]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			theirs := take(t, locks[1], longLease)
			waiter := inBackground(
				func() (*rlock.Hold, error) { return of(locks).TryLock(t.Context(), time.Minute, lease) },
			)
			eventually(t, func() bool { return exists(t, s, "a") }, "a is taken")
			stop := watchLease(t, s, "a", lease)
			<-time.After(2 * lease)
			require.Positive(t, stop())
			unlock(t, theirs)
			hold := acquired(t, waiter)
			require.True(t, hold.Valid())
			unlock(t, hold)
		})
	}
}

// In less than a third of the lease nothing need be renewed. The hold must not be shorter for it.
func TestAllPartsHaveTheLeaseThatWasAskedForWhenAllAreHeld(t *testing.T) {
	t.Parallel()
	p := startPair(t, rlock.Options{})
	for name, locks := range shapes(p) {
		for late, part := range map[string]*rlock.Lock{
			"the second part": locks[1], "the last part": locks[2],
		} {
			t.Run(name+", "+late, func(t *testing.T) {
				const lease = 10 * time.Second
				theirs := take(t, part, longLease)
				waiter := lockInBackground(t.Context(), of(locks), lease)
				eventually(t, func() bool { return exists(t, p.first, "a") }, "a is taken")
				<-time.After(2 * 2 * watchdog.Drift(lease)) // twice what the lease may lack
				released := time.Now()
				unlock(t, theirs)
				hold := acquired(t, waiter)
				require.True(t, hold.Deadline().After(released.Add(lease-2*watchdog.Drift(lease))),
					"the lease is too short by %v", released.Add(lease).Sub(hold.Deadline()))
				require.LessOrEqual(t, lasts(t, p.first, "a"), lease)
				require.False(t, hold.Deadline().After(time.Now().Add(lease)))
				unlock(t, hold)
				requireFree(t, p.first, p.second)
			})
		}
	}
}

// No part was waited for, and so no part needs a second command.
func TestPartThatTheOwnerHeldForLongerKeepsItsLease(t *testing.T) {
	t.Parallel()
	p := startPair(t, rlock.Options{})
	for name, locks := range shapes(p) {
		t.Run(name, func(t *testing.T) {
			const lease = 20 * time.Second
			outer := take(t, locks[0], longLease)
			hold := takeWith(outer.Context(), t, of(locks), lease)
			require.Greater(t, lasts(t, p.first, "a"), longLease-time.Minute)
			require.Less(t, time.Until(hold.Deadline()), lease)
			require.Greater(t, time.Until(hold.Deadline()), lease-5*time.Second)
			unlock(t, hold)
			require.Greater(t, lasts(t, p.first, "a"), longLease-time.Minute)
			require.True(t, outer.Valid())
			unlock(t, outer)
			requireFree(t, p.first, p.second)
		})
	}
}

// requireLostWhileWaiting requires that an acquisition fails at once when lose takes part a from it
// while it waits for b.
func requireLostWhileWaiting(
	t *testing.T, p *pair, locks []*rlock.Lock, lease time.Duration, lose func(),
) {
	t.Helper()
	theirs := take(t, p.client.NewFencedLock("b"), longLease)
	waiter := lockInBackground(t.Context(), of(locks), lease)
	waitForWaiter(t, p.first)
	lose()
	o := result(t, waiter)
	require.ErrorIs(t, o.Err, rlock.ErrLost)
	require.NotErrorIs(t, o.Err, rlock.ErrReleased)
	require.ErrorContains(t, o.Err, `lock "a" lost`)
	require.ErrorContains(t, o.Err, "while another part was waited for")
	require.Equal(t, 1, strings.Count(o.Err.Error(), "holdfast:"), o.Err)
	var lost *rlock.LostError
	require.ErrorAs(t, o.Err, &lost)
	require.Equal(t, "a", lost.Lock)
	unlock(t, theirs)
	waitUntilFree(t, p.first, p.second)
}

func TestPartThatIsLostWhileAnotherIsWaitedForFailsTheAcquisitionAtOnce(t *testing.T) {
	t.Parallel()
	p := startPair(t, rlock.Options{WatchdogLease: 3 * time.Second})
	for name, locks := range shapes(p) {
		t.Run(name, func(t *testing.T) {
			for how, lease := range map[string]time.Duration{
				"renewed": rlock.Watchdog, "kept": 3 * time.Second,
			} {
				t.Run(how, func(t *testing.T) {
					requireLostWhileWaiting(t, p, locks, lease, func() { forceUnlock(t, locks[0]) })
					// Only Redis knows of this loss; the next renewal finds out.
					requireLostWhileWaiting(t, p, locks, lease,
						func() { p.first.Do(t, "DEL", "a") })
				})
			}
			t.Run("released by the same owner", func(t *testing.T) {
				theirs := take(t, p.client.NewFencedLock("b"), longLease)
				ctx := rlock.WithOwner(t.Context())
				waiter := lockInBackground(ctx, of(locks), longLease)
				waitForWaiter(t, p.first)
				eventually(
					t,
					func() bool { // Redis may know of the hold a moment before its owner does
						err := locks[0].Unlock(ctx)
						require.True(t, err == nil || errors.Is(err, rlock.ErrNotHeld), "%v", err)
						return err == nil
					},
					"the part is released",
				)
				o := result(t, waiter)
				require.ErrorIs(t, o.Err, rlock.ErrLost)
				require.NotErrorIs(t, o.Err, rlock.ErrReleased)
				require.ErrorContains(t, o.Err, `lock "a"`)
				require.NotContains(t, o.Err.Error(), "was not released")
				unlock(t, theirs)
				waitUntilFree(t, p.first, p.second)
			})
		})
	}
}

// With a long lease nothing asks about the first part until the last one is held.
func TestFinalStepThatIsRefusedFailsTheAcquisition(t *testing.T) {
	t.Parallel()
	p := startPair(t, rlock.Options{})
	for name, locks := range shapes(p) {
		t.Run(name, func(t *testing.T) {
			const lease = 20 * time.Second // its margin is 202 ms
			theirs := take(t, locks[2], longLease)
			waiter := lockInBackground(t.Context(), of(locks), lease)
			eventually(t, func() bool { return exists(t, p.first, "b") }, "b is taken")
			<-time.After(300 * time.Millisecond)
			p.first.Do(t, "DEL", "a")
			other := take(t, multilock.New(p.client.NewLock("a")), longLease)
			unlock(t, theirs)
			o := result(t, waiter)
			require.ErrorIs(t, o.Err, rlock.ErrLost)
			require.ErrorContains(t, o.Err, `lock "a" lost`)
			require.Equal(t, []string{"a"}, left(t, p.first))
			require.True(t, other.Valid())
			unlock(t, other)
			requireFree(t, p.first, p.second)
		})
	}
}
