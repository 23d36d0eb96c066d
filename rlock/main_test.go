package rlock_test

import (
	"slices"
	"testing"

	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
	"holdfast/rlock"
)

func TestMain(m *testing.M) { locktest.Main(m, nil) }

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
