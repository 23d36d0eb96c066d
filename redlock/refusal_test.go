//go:build redis

package redlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/faults"
	"holdfast/internal/redistest"
	"holdfast/redlock"
	"holdfast/rlock"
)

func TestMajorityThatRefusesForGoodEndsAWaitAtOnceAndAMinorityDoesNot(t *testing.T) {
	t.Parallel()
	for what, f := range faults.WithEffect(faults.ForGood) {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			servers := startNodes(t, 5, f.Options...)
			refuse := func(s *redistest.Server) {
				f.Begin(t, &faults.Victim{Server: s, Lock: name})
			}
			clients := newClients(t, servers, rlock.Options{})
			warm(t, clients)
			l := redlock.NewOn(name, atOnce, clients...)
			for _, s := range servers[:2] {
				refuse(s)
			}
			unlock(t, take(t, l, longLease))
			waitUntilFree(t, servers[2:]...)
			giveOne(t, servers[2:], name)
			for _, wait := range []time.Duration{rlock.NoWait, time.Second} {
				_, err := l.TryLock(t.Context(), wait, longLease)
				require.ErrorIs(t, err, rlock.ErrNotAcquired, "it is acquired once it is unlocked")
				require.NotErrorIs(t, err, redlock.ErrNoQuorum)
			}

			// A waiter finds out with its next request.
			var err error
			done := queueUp(t.Context(), t, l, longLease)
			waitForListeners(t, servers[2:], name, 1)
			// It asks once more when it has subscribed. It must not take the lock on a node that then
			// refuses to release it.
			waitUntilQuiet(t, servers[2:])
			servers[2].Do(t, "DEL", name)
			refuse(servers[2])
			giveBack(t, servers[3:], name)
			within(t, promptly, func() { err = result(t, done).Err })
			_, another := l.Lock(t.Context(), longLease)
			for _, err := range []error{err, another} {
				require.ErrorIs(t, err, redlock.ErrNoQuorum)
				require.NotErrorIs(t, err, rlock.ErrNotAcquired)
				var refusal *rlock.ServerError
				require.ErrorAs(t, err, &refusal)
				require.Equal(t, f.Code, refusal.Code)
				require.ErrorContains(t, err, refusal.Advice)
				_ = quorumError(t, err)
			}
			waitUntilFree(t, servers[3:]...)
		})
	}
}

func TestServersOutOfMemoryStillExtend(t *testing.T) {
	t.Parallel()
	servers := startNodes(t, 3)
	clients := newClients(t, servers, rlock.Options{})
	l := redlock.NewOn(name, atOnce, clients...)
	hold := take(t, l, 10*time.Second)
	nested := takeWith(hold.Context(), t, l, 10*time.Second)
	for _, s := range servers {
		faults.Named(t, "is out of memory").Begin(t, &faults.Victim{Server: s, Lock: name})
	}
	require.NoError(t, hold.Extend(t.Context(), 20*time.Second))
	require.Greater(t, time.Until(hold.Deadline()), 15*time.Second)
	_, err := l.TryLock(hold.Context(), rlock.NoWait, 10*time.Second)
	require.ErrorContains(t, err, "OOM", "another level takes memory")
	unlock(t, nested)
	unlock(t, hold)
	waitUntilFree(t, servers...)
}
