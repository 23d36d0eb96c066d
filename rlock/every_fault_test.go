//go:build redis

package rlock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/faults"
	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// Whatever happens to the server: an attempt without wait reports what is wrong, and one with wait
// acquires the lock when the fault is over, unless it may never be. What was held before is still
// held, if the server knows of it.
func TestEveryFaultIsReportedAndOutlasted(t *testing.T) {
	t.Parallel()
	for what, f := range faults.All() {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t, f.Options...)
			c, p := proxied(t, s, rlock.Options{CommandTimeout: time.Second})
			lock := c.NewLock("order")
			v := &faults.Victim{Server: s, Proxy: p, Lock: "order"}
			v.ForceUnlock = func(t testing.TB) {
				_, err := lock.ForceUnlock(t.Context())
				require.NoError(t, err)
			}
			warm(t, c, "order")

			f.Begin(t, v)
			hold, err := lock.TryLock(t.Context(), rlock.NoWait, longLease)
			var reply *rlock.ServerError
			switch f.Effect {
			case faults.Nothing: // or a connection or a dial broke just then
				if err == nil {
					err = hold.Unlock(t.Context())
				}
				if err != nil && !errors.Is(err, rlock.ErrOutcomeUnknown) {
					require.ErrorAs(t, err, &reply)
					require.Equal(t, rlock.ClassTemporary, reply.Class)
				}
			case faults.NoReply:
				require.NotErrorIs(t, err, rlock.ErrNotAcquired)
				require.ErrorAs(t, err, &reply)
				require.NotEmpty(t, reply.Advice)
			case faults.ForNow:
				requireRefusal(t, err, f.Code)
			case faults.ForGood:
				requireRefusal(t, err, f.Code)
				requireRefusedAtOnce(t, lock, f.Code)
			case faults.Held:
				require.ErrorIs(t, err, rlock.ErrNotAcquired)
			}
			var waiter <-chan outcome
			if f.Effect != faults.ForGood {
				waiter = lockInBackground(t.Context(), lock, longLease)
			}
			f.End(t, v)
			if waiter == nil {
				waiter = lockInBackground(t.Context(), lock, longLease)
			}
			unlock(t, acquired(t, waiter))
			waitUntilFree(t, s, "order")

			hold = acquired(t, lockInBackground(t.Context(), lock, longLease))
			f.Begin(t, v)
			f.End(t, v)
			eventually(t, func() bool {
				_, err := lock.Info(t.Context())
				return err == nil
			}, "connected again, or a release may be what a lost reply was about")
			if f.LosesLock {
				require.ErrorIs(t, hold.Unlock(t.Context()), rlock.ErrLost)
			} else {
				unlock(t, hold)
			}
			waitUntilFree(t, s, "order")
		})
	}
}
