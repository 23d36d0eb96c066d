//go:build redis

package rlock_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/faults"
	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// Errors that pass by themselves: a wait outlasts them, an attempt without wait returns them.

func TestWaitOutlastsATemporaryError(t *testing.T) {
	t.Parallel()
	for what, f := range faults.WithEffect(faults.ForNow) {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t, f.Options...)
			c := newClient(t, s, rlock.Options{CommandTimeout: longWait})
			holds := make(map[string]*rlock.Hold)
			for _, k := range kinds {
				holds[k.name] = take(t, k.lock(c, k.name), time.Minute)
			}
			end := befall(t, s, what)

			wait := 3 * time.Second
			if f.Code == "LOADING" { // which is over by itself then
				wait = 500 * time.Millisecond
			}
			var leaving, waiters []<-chan outcome
			released := make(map[string]chan error)
			for _, k := range kinds {
				lock := k.lock(c, "other "+k.name)
				_, err := lock.TryLock(t.Context(), rlock.NoWait, time.Second)
				requireRefusal(t, err, f.Code)
				leaving = append(leaving, inBackground(func() (*rlock.Hold, error) {
					return lock.TryLock(t.Context(), wait, time.Second)
				}))
			}
			// At the end of a wait a try may be in flight. The error still has what was known
			// before.
			for _, waiter := range leaving {
				err := result(t, waiter).Err
				require.ErrorContains(t, err, f.Code)
				require.NotErrorIs(t, err, rlock.ErrNotAcquired)
			}

			for _, k := range kinds {
				waiters = append(waiters,
					lockInBackground(t.Context(), k.lock(c, "other "+k.name), time.Minute))
				done := make(chan error, 1)
				released[k.name] = done
				go func() { done <- holds[k.name].Unlock(t.Context()) }()
			}
			require.Never(t, func() bool {
				for _, k := range kinds {
					if len(released[k.name]) > 0 {
						return true
					}
				}
				return slices.ContainsFunc(waiters, func(waiter <-chan outcome) bool {
					return len(waiter) > 0
				})
			}, 100*time.Millisecond, 10*time.Millisecond)
			end()
			for i, k := range kinds {
				unlock(t, acquired(t, waiters[i]))
				require.NoError(t, receive(t, released[k.name], "the release has not ended"))
				requireFree(t, s, k.name)
				requireFree(t, s, "other "+k.name)
			}
		})
	}
}

func TestEndOfAWaitReturnsTheErrorBeforeTheLastTry(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{CommandTimeout: longWait}) // the last try has no reply
	for _, k := range kinds {
		k.warm(t, c, k.name)
	}
	befall(t, s, "lacks replicas")
	monitor := s.Monitor(t)
	var waiters []<-chan outcome
	for _, k := range kinds {
		waiters = append(waiters, inBackground(func() (*rlock.Hold, error) {
			return k.lock(c, k.name).TryLock(t.Context(), 8*time.Second, time.Minute)
		}))
	}
	tries := make(map[string]int) // the second is sent after the reply to the first
	eventually(t, func() bool {
		for _, command := range monitor.Commands(t) {
			for _, k := range kinds {
				if slices.Contains(command, k.name) {
					tries[k.name]++
				}
			}
		}
		for _, k := range kinds {
			if tries[k.name] < 2 {
				return false
			}
		}
		return true
	}, "it was not tried twice")
	s.Pause(t)

	for _, waiter := range waiters {
		err := result(t, waiter).Err
		require.ErrorIs(t, err, rlock.ErrOutcomeUnknown)
		require.ErrorContains(t, err, "no reply")
		require.ErrorContains(t, err, "NOREPLICAS")
	}
}
