//go:build redis

package rlock_test

import (
	"context"
	"crypto/tls"
	"net"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
	"holdfast/rlock"
	"holdfast/watchdog"
)

func TestServerThatRestartsEmptyEndsTheHoldAtTheNextRenewal(t *testing.T) {
	t.Parallel()
	withoutNesting(t, func(t *testing.T, k kind) {
		t.Parallel()
		s := redistest.Start(t)
		c := newClient(t, s, rlock.Options{WatchdogLease: watchedLease})
		hold := take(t, k.lock(c, k.name), rlock.Watchdog)
		s.Restart(t)
		restarted := time.Now()
		lostTo(t, hold, watchdog.ErrGone)
		require.Less(t, time.Since(restarted), watchedLease*5/6,
			"a renewal comes every third of a lease")
		requireFree(t, s, k.name)
	})
}

func TestUnlockAfterTheServerRestartedEmptySaysThatTheLockWasLost(t *testing.T) {
	t.Parallel()
	onEveryKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		s := redistest.Start(t)
		lock := k.lock(newClient(t, s, rlock.Options{}, redistest.OneConnection), k.name)
		hold := take(t, lock, longLease)
		s.Restart(t)
		// A release on the connection that died would be unconfirmed: it might have been executed
		// before.
		eventually(t, func() bool {
			locked, err := lock.IsLocked(t.Context())
			return err == nil && !locked
		}, "no connection to the restarted server")
		require.ErrorIs(t, hold.Unlock(t.Context()), rlock.ErrLost)
		requireFree(t, s, k.name)
	})
}

func TestServerThatKeepsItsDataKeepsTheHoldThroughARestart(t *testing.T) {
	t.Parallel()
	onEveryKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		s := redistest.Start(t, redistest.WithAppendOnly())
		lock := k.lock(newClient(t, s, rlock.Options{WatchdogLease: 6 * time.Second}), k.name)
		hold := take(t, lock, rlock.Watchdog)
		inner := takeWith(hold.Context(), t, lock, rlock.Watchdog)
		s.Restart(t)
		before := hold.Deadline()
		eventually(t, func() bool { return hold.Deadline().After(before.Add(time.Second)) },
			"not renewed after the restart")
		require.True(t, hold.Valid())
		require.Equal(t, k.hash(hold.Owner(), 2), s.DoMap(t, "HGETALL", k.name))
		unlock(t, inner)
		unlock(t, hold)
		requireFree(t, s, k.name)
	})
}

func TestWaiterGetsTheLockFromAServerThatRestartedEmpty(t *testing.T) {
	t.Parallel()
	onEveryContest(t, func(t *testing.T, k kind) {
		t.Parallel()
		s := redistest.Start(t)
		holder, c := newClient(t, s, rlock.Options{}), newClient(t, s, rlock.Options{})
		take(t, k.contender(holder, k.name), longLease)
		waiter := lockInBackground(t.Context(), k.lock(c, k.name), longLease)
		k.waitForListeners(t, s, k.name, 1)
		s.Restart(t)
		restarted := time.Now()
		hold := acquired(t, waiter)
		require.Less(t, time.Since(restarted), locktest.Missed)
		unlock(t, hold)
		waitForNothingLeft(t, s)
	})
}

func TestWaiterGetsTheLockThatIsReleasedAfterARestart(t *testing.T) {
	t.Parallel()
	onEveryContest(t, func(t *testing.T, k kind) {
		t.Parallel()
		s := redistest.Start(t, redistest.WithAppendOnly())
		holder, c := newClient(t, s, rlock.Options{}), newClient(t, s, rlock.Options{})
		hold := take(t, k.contender(holder, k.name), longLease)
		waiter := k.parked(t, s, k.lock(c, k.name))
		s.Restart(t)
		unlock(t, hold)
		released := time.Now()
		next := acquired(t, waiter)
		require.Less(t, time.Since(released), locktest.Missed)
		unlock(t, next)
		waitForNothingLeft(t, s)
	})
}

func TestWaiterWaitsForAServerThatIsDown(t *testing.T) {
	t.Parallel()
	onEveryKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		s := redistest.Start(t)
		refused := make(chan struct{}, 1000)
		c := newClient(
			t,
			s,
			rlock.Options{},
			redistest.OneConnection,
			func(o *rueidis.ClientOption) {
				o.DialCtxFn = func(
					ctx context.Context, address string, dialer *net.Dialer, _ *tls.Config,
				) (net.Conn, error) {
					connection, err := dialer.DialContext(ctx, "tcp", address)
					if err != nil {
						refused <- struct{}{}
					}
					return connection, err
				}
			},
		)
		lock := k.lock(c, k.name)
		unlock(t, take(t, lock, longLease)) // connects it
		s.Kill(t)
		waiter := lockInBackground(t.Context(), lock, longLease)
		for range 5 {
			receive(t, refused, "the waiter does not try again")
		}
		s.Restart(t)
		unlock(t, acquired(t, waiter))
	})
}
