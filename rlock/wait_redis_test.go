//go:build redis

package rlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

func TestWaitersCostNoCommandsWhileTheyWait(t *testing.T) {
	t.Parallel()
	onEveryContest(t, func(t *testing.T, k kind) {
		t.Parallel()
		s := redistest.Start(t)
		client := newClient(t, s, rlock.Options{})
		lock := k.lock(client, k.name)
		warm(t, client, "scripts that all kinds share")
		unlock(t, take(t, lock, rlock.Watchdog)) // loads the scripts
		hold := take(t, k.contender(client, k.name), 30*time.Second)
		monitor := s.Monitor(t)
		const waiters = 20
		for i := range waiters {
			lockInBackground(t.Context(), lock, rlock.Watchdog)
			// a caller that comes with the first does not know yet that the lock is held
			if i == 0 {
				eventually(t, func() bool { return rlock.Waiting(lock) == 1 },
					"the first is in line")
			}
		}
		eventually(t, func() bool { return rlock.Waiting(lock) == waiters }, "all wait")
		asking := 1 // the head of the queue
		if k.lonely {
			asking = waiters
		}
		// Each that asks tries, listens, and tries again.
		k.waitForListeners(t, s, k.name, asking)
		tries := 0
		eventually(t, func() bool {
			for _, verb := range verbs(monitor.Commands(t)) {
				if verb == "evalsha" {
					tries++
				}
			}
			return tries >= 2*asking
		}, "everybody has looked twice")
		<-time.After(1500 * time.Millisecond)
		for _, command := range monitor.Commands(t) {
			require.Equal(t, "pubsub", command[0], "only the test itself asks")
		}
		require.Equal(t, 2*asking, tries)
		require.True(t, hold.Valid())
	})
}

// A lock without expiry cannot be taken, but waiting for it must not spin.
func TestLockWithoutExpiryIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	onEveryContest(t, func(t *testing.T, k kind) {
		lock := k.lock(newClient(t, s, anonymous), k.name)
		plant(t, s, k.name, k.contenderHash("another:1", 2))
		before := s.CommandStats(t)["evalsha"]
		start := time.Now()
		_, err := lock.TryLock(t.Context(), 500*time.Millisecond, rlock.Watchdog)
		var held *rlock.HeldError
		require.ErrorAs(t, err, &held)
		require.Equal(t, rlock.NoExpiry, held.TTL)
		require.Equal(t, "another:1", held.Owner)
		require.GreaterOrEqual(t, time.Since(start), 500*time.Millisecond)
		// two requests, and perhaps a cleanup
		require.LessOrEqual(t, s.CommandStats(t)["evalsha"]-before, 3, "it spins")
		require.Equal(t, k.contenderHash("another:1", 2), s.DoMap(t, "HGETALL", k.name))
	})
}

func TestExpiredLockGoesToTheNext(t *testing.T) {
	t.Parallel()
	onEveryContest(t, func(t *testing.T, k kind) {
		t.Parallel()
		s := redistest.Start(t)
		held := k.contender(newClient(t, s, rlock.Options{}), k.name)
		waiting := k.lock(newClient(t, s, rlock.Options{}), k.name)
		hold := take(t, held, 2*time.Second)
		o := result(t, lockInBackground(t.Context(), waiting, rlock.Watchdog))
		require.NoError(t, o.Err)
		require.False(t, o.At.Before(hold.Deadline()), "two owners trust the lock at once")
		require.Less(t, o.At.Sub(hold.Deadline()), 2*time.Second,
			"long before it would ask by itself")
		require.False(t, hold.Valid())
		receive(t, hold.Done(), "the hold did not end with its lease")
		require.ErrorIs(t, hold.Err(), rlock.ErrLost)
	})
}
