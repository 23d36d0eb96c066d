//go:build redis

package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/redlock"
	"holdfast/rlock"
)

func init() { processes["holder"] = holder }

// holder takes the lock on the nodes args[1:] for args[0], and holds it until it is killed.
func holder(args []string) error {
	lease, err := time.ParseDuration(args[0])
	if err != nil {
		return err
	}
	clients, closeAll, err := connect(args[1:])
	if err != nil {
		return err
	}
	defer closeAll()
	_, err = redlock.NewOn(name, atOnce, clients...).Lock(context.Background(), lease)
	if err != nil {
		return err
	}
	fmt.Println("held")
	_, err = os.Stdin.Read(make([]byte, 1))
	return err
}

func TestWaiterGetsTheLockOfAKilledProcessWhenItsLeaseEnds(t *testing.T) {
	t.Parallel()
	const lease = 2 * time.Second
	servers := startNodes(t, 5)
	clients := newClients(t, servers, rlock.Options{})
	warm(t, clients)
	bestOf(t, promptly, func() time.Duration {
		p := startProcess(t, "holder", append([]string{lease.String()}, addressesOf(servers)...)...)
		require.Equal(t, "held", p.Line(t))
		start := time.Now()
		left := time.Hour
		for _, s := range servers {
			left = min(left, time.Duration(s.DoInt(t, "PTTL", name))*time.Millisecond)
		}
		done := queueUp(t.Context(), t, redlock.NewOn(name, atOnce, clients...), longLease)
		require.NoError(t, p.Kill())
		next := result(t, done)
		require.NoError(t, next.Err)
		took := next.At.Sub(start)
		require.GreaterOrEqual(t, took, left-10*time.Millisecond, "while it was held")
		unlock(t, next.Hold)
		waitUntilFree(t, servers...)
		return took - left
	})
}

// The next waiter has not asked the nodes itself: it knows of the lease from its predecessor. Its
// end is not announced.
func TestWaiterGetsTheLockWhenTheLeaseOfItsPredecessorEnds(t *testing.T) {
	t.Parallel()
	const lease = 700 * time.Millisecond
	servers := startNodes(t, 1) // more would wake it by late confirmations of the subscription
	l := redlock.NewOn(name, atOnce, newClients(t, servers, rlock.Options{})...)
	bestOf(t, promptly, func() time.Duration {
		take(t, l, lease) // not unlocked, so no message wakes a waiter
		first := queueUp(t.Context(), t, l, lease)
		waitForListeners(t, servers, name, 1)
		second := queueUp(t.Context(), t, l, longLease)
		predecessor := acquired(t, first)
		next := result(t, second)
		require.NoError(t, next.Err)
		unlock(t, next.Hold)
		return next.At.Sub(predecessor.Deadline())
	})
}

func TestEndOfTheContextEndsTheWait(t *testing.T) {
	t.Parallel()
	servers := startNodes(t, 5)
	l := redlock.NewOn(name, atOnce, newClients(t, servers, rlock.Options{})...)
	hold := take(t, l, longLease)
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	head := queueUp(ctx, t, l, longLease)
	waitForListeners(t, servers, name, 1)
	next := queueUp(ctx, t, l, longLease)
	start := time.Now()
	cancel(enough)
	for i, done := range []<-chan outcome{head, next} {
		o := result(t, done)
		require.ErrorIs(t, o.Err, context.Canceled)
		require.ErrorIs(t, o.Err, enough)
		require.ErrorIs(t, o.Err, rlock.ErrNotAcquired)
		require.NotErrorIs(t, o.Err, redlock.ErrNoQuorum)
		if i == 0 { // the next one may become head before it leaves, and knows of no holder then
			require.ErrorContains(t, o.Err, hold.Owner())
		}
		require.Less(t, o.At.Sub(start), promptly)
	}
	_, err := l.Lock(ctx, longLease)
	require.ErrorIs(t, err, enough)
	require.True(t, hold.Valid())
	unlock(t, hold)
	waitUntilFree(t, servers...)
}

func TestEndOfTheWaitNamesTheHolder(t *testing.T) {
	t.Parallel()
	const wait = time.Second
	servers := startNodes(t, 5)
	clients := newClients(t, servers, rlock.Options{})
	hold := take(t, redlock.NewOn(name, atOnce, clients...), longLease)
	for _, l := range []*redlock.Lock{
		redlock.NewOn(name, atOnce, clients...),
		redlock.NewOn(name, atOnce, newClients(t, servers, rlock.Options{})...),
	} {
		start := time.Now()
		_, err := l.TryLock(t.Context(), wait, longLease)
		took := time.Since(start)
		require.GreaterOrEqual(t, took, wait)
		require.Less(t, took, wait+promptly)
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
		require.NotErrorIs(t, err, redlock.ErrNoQuorum)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, hold.Owner())
		var held *rlock.HeldError
		require.ErrorAs(t, err, &held)
		require.Equal(t, hold.Owner(), held.Owner)
		require.Greater(t, held.TTL, longLease-time.Minute)
	}
	require.True(t, hold.Valid())
	unlock(t, hold)
	waitUntilFree(t, servers...)
}
