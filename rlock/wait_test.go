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
