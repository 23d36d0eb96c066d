package rlock_test

import (
	"context"
	"crypto/tls"
	"net"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
	"holdfast/watchdog"
)

func TestServerThatRestartsEmptyEndsTheHoldAtTheNextRenewal(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{WatchdogLease: 3 * time.Second})
	hold := take(t, c.NewLock("order"), rlock.Watchdog)
	s.Restart(t)
	restarted := time.Now()
	lostTo(t, hold, watchdog.ErrGone)
	require.Less(t, time.Since(restarted), 2*time.Second, "a renewal comes every second")
	require.Zero(t, s.DoInt(t, "EXISTS", "order"))
}

func TestUnlockAfterTheServerRestartedEmptySaysThatTheLockWasLost(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{}, oneConnection)
	hold := take(t, c.NewLock("order"), longLease)
	s.Restart(t)
	// A release on the connection that died would be in doubt: it might have been executed just before.
	eventually(t, func() bool {
		locked, err := c.NewLock("order").IsLocked(t.Context())
		return err == nil && !locked
	}, "no connection to the restarted server")
	require.ErrorIs(t, hold.Unlock(t.Context()), rlock.ErrLost)
}

func TestServerThatKeepsItsDataKeepsTheHoldThroughARestart(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.WithAppendOnly())
	c := newClient(t, s, rlock.Options{WatchdogLease: 3 * time.Second})
	hold := take(t, c.NewLock("order"), rlock.Watchdog)
	inner := takeWith(hold.Context(), t, c.NewLock("order"), rlock.Watchdog)
	s.Restart(t)
	before := hold.Deadline()
	eventually(t, func() bool { return hold.Deadline().After(before.Add(time.Second)) }, "not renewed after the restart")
	require.True(t, hold.Valid())
	require.Equal(t, map[string]string{hold.Owner(): "2"}, s.DoMap(t, "HGETALL", "order"))
	unlock(t, inner)
	unlock(t, hold)
	require.Zero(t, s.DoInt(t, "EXISTS", "order"))
}

func TestWaiterGetsTheLockFromAServerThatRestartedEmpty(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	holder, c := newClient(t, s, rlock.Options{}), newClient(t, s, rlock.Options{})
	take(t, holder.NewLock("order"), longLease)
	waiter := lockInBackground(t.Context(), c.NewLock("order"), longLease)
	awaitListeners(t, s, "order", 1)
	s.Restart(t)
	restarted := time.Now()
	hold := acquired(t, waiter)
	require.Less(t, time.Since(restarted), 3*time.Second)
	unlock(t, hold)
}

func TestWaiterGetsTheLockThatIsReleasedAfterARestart(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.WithAppendOnly())
	holder, c := newClient(t, s, rlock.Options{}), newClient(t, s, rlock.Options{})
	hold := take(t, holder.NewLock("order"), longLease)
	waiter := lockInBackground(t.Context(), c.NewLock("order"), longLease)
	awaitListeners(t, s, "order", 1)
	s.Restart(t)
	unlock(t, hold)
	released := time.Now()
	next := acquired(t, waiter)
	require.Less(t, time.Since(released), 3*time.Second)
	unlock(t, next)
}

func TestWaiterWaitsForAServerThatIsDown(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	refused := make(chan struct{}, 1000)
	c := newClient(t, s, rlock.Options{}, oneConnection, func(o *rueidis.ClientOption) {
		o.DialCtxFn = func(ctx context.Context, address string, dialer *net.Dialer, _ *tls.Config) (net.Conn, error) {
			connection, err := dialer.DialContext(ctx, "tcp", address)
			if err != nil {
				refused <- struct{}{}
			}
			return connection, err
		}
	})
	warm(t, c, "order")
	s.Kill(t)
	waiter := lockInBackground(t.Context(), c.NewLock("order"), longLease)
	for range 5 {
		receive(t, refused, "the waiter does not try again")
	}
	s.Restart(t)
	unlock(t, acquired(t, waiter))
}
