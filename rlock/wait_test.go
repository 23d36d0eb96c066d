package rlock_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// wakeUp returns how long after the release a waiter acquires the lock, whose holder's lease is 30
// s.
func (k kind) wakeUp(
	t *testing.T, s *redistest.Server, waiting, held *rlock.Lock, release func(*rlock.Hold),
) time.Duration {
	t.Helper()
	// A writer may have to let readers pass that waited in the previous round.
	hold := acquired(t, lockInBackground(t.Context(), held, 30*time.Second))
	waiter := k.parked(t, s, waiting)
	start := time.Now()
	release(hold)
	o := result(t, waiter)
	require.NoError(t, o.Err)
	unlock(t, o.Hold)
	return o.At.Sub(start)
}

// parked starts a waiter for a lock that is held, and returns when it has asked twice, the second
// time once it listens. From then on only a message, or the clock, makes it ask again.
func (k kind) parked(t *testing.T, s *redistest.Server, lock *rlock.Lock) <-chan outcome {
	t.Helper()
	monitor, asked := s.Monitor(t), 0
	waiter := lockInBackground(t.Context(), lock, rlock.Watchdog)
	k.waitForListeners(t, s, lock.Name(), 1)
	eventually(t, func() bool {
		for _, command := range monitor.Commands(t) {
			if command[0] == "evalsha" && slices.Contains(command, lock.Name()) {
				asked++
			}
		}
		return asked >= 2
	}, "the second look")
	return waiter
}

// requireFast requires that what should take less than 50 ms does so at least once in a few times;
// a busy machine may delay the others.
func requireFast(t *testing.T, measure func() time.Duration) {
	t.Helper()
	bestOf(t, 50*time.Millisecond, measure)
}

func TestWaiterIsWokenByAnUnlockInItsOwnClient(t *testing.T) {
	s := redistest.Start(t)
	onEveryContest(t, func(t *testing.T, k kind) {
		client := newClient(t, s, rlock.Options{})
		requireFast(t, func() time.Duration {
			return k.wakeUp(t, s, k.lock(client, k.name), k.contender(client, k.name),
				func(h *rlock.Hold) { unlock(t, h) })
		})
	})
}

func TestWaiterIsWokenByAnUnlockInAnotherClient(t *testing.T) {
	s := redistest.Start(t)
	onEveryContest(t, func(t *testing.T, k kind) {
		client, other := newClient(t, s, rlock.Options{}), newClient(t, s, rlock.Options{})
		requireFast(t, func() time.Duration {
			return k.wakeUp(t, s, k.lock(client, k.name), k.contender(other, k.name),
				func(h *rlock.Hold) { unlock(t, h) })
		})
	})
}

// A release like Redisson's, without the keys that only this library knows.
func TestWaiterIsWokenByAPlainRelease(t *testing.T) {
	s := redistest.Start(t)
	onEveryContest(t, func(t *testing.T, k kind) {
		lock := k.lock(newClient(t, s, rlock.Options{}), k.name)
		requireFast(t, func() time.Duration {
			k.waitForListeners(t, s, k.name, 0) // the waiter of the previous try listened
			plant(t, s, k.name, k.contenderHash("another:1", 1))
			s.Do(t, "PEXPIRE", k.name, "30000")
			waiter := k.parked(t, s, lock)
			channels := s.DoStrings(t, "PUBSUB", "CHANNELS", k.channel+":{"+k.name+"}*")
			require.Len(t, channels, 1)
			start := time.Now()
			s.Do(t, "DEL", k.name)
			message := "0"
			if k.contenderMode == "write" {
				message = "1"
			}
			require.EqualValues(t, 1, s.DoInt(t, "PUBLISH", channels[0], message))
			o := result(t, waiter)
			require.NoError(t, o.Err)
			unlock(t, o.Hold)
			return o.At.Sub(start)
		})
	})
}

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
