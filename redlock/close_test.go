//go:build !race

package redlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/compose"
	"holdfast/redlock"
	"holdfast/rlock"
)

func TestCloseOfAMinorityOfTheClientsDoesNotEndTheHoldAndThatOfAThirdDoes(t *testing.T) {
	t.Parallel()
	inWorld(t, 5, rlock.Options{}, func(t *testing.T, w *world) {
		hold := w.takeOnAll(t, rlock.Watchdog)
		for _, c := range w.clients[:2] {
			closeClient(t, c)
		}
		time.Sleep(10 * time.Minute)
		require.True(t, hold.Valid(), "%v", hold.Err())
		unlock(t, takeWith(hold.Context(), t, w.lock, rlock.Watchdog))
		another := redlock.NewOn("another", atOnce, w.clients...)
		unlock(t, take(t, another, rlock.Watchdog))

		ctx := hold.Context()
		closeClient(t, w.clients[2])
		require.ErrorIs(t, hold.Err(), rlock.ErrClosed, "the hold has ended when Close returns")
		require.ErrorIs(t, context.Cause(ctx), rlock.ErrClosed)
		require.False(t, hold.Valid())
		require.ErrorIs(t, hold.Unlock(), rlock.ErrClosed)
		start := time.Now()
		_, err := w.lock.Lock(t.Context(), rlock.Watchdog)
		require.ErrorIs(t, err, rlock.ErrClosed)
		_, err = another.TryLock(t.Context(), rlock.NoWait, longLease)
		require.ErrorIs(t, err, rlock.ErrClosed)
		require.Zero(t, time.Since(start))
		require.LessOrEqual(t, w.held(t), 3, "on the servers of closed clients, until the lease ends")
	})
}

// What a release must release is decided before any call can learn of it. This test's call learns
// of it first.
func TestCloseDuringUnlockIsNoLoss(t *testing.T) {
	t.Parallel()
	inWorld(t, 5, rlock.Options{}, func(t *testing.T, w *world) {
		hold := w.takeOnAll(t, rlock.Watchdog)
		rlock.Internals(compose.Access{}).OnEnd(hold, func(error) {
			for _, c := range w.clients[:3] {
				closeClient(t, c)
			}
		})
		err := hold.Unlock()
		require.ErrorIs(t, err, rlock.ErrOutcomeUnknown)
		require.ErrorIs(t, err, rlock.ErrClosed)
		require.NotErrorIs(t, err, rlock.ErrLost)
	})
}

func TestUnlockReturnsWhileAMinorityHangsAndIsAnUnknownOutcomeInTimeIfMoreDo(t *testing.T) {
	t.Parallel()
	const limit = time.Second
	for _, hung := range []int{2, 3} {
		inWorld(t, 5, rlock.Options{CommandTimeout: limit}, func(t *testing.T, w *world) {
			hold := w.takeOnAll(t, longLease)
			for _, s := range w.Servers[:hung] {
				s.Pause(t)
			}
			ctx, start := hold.Context(), time.Now()
			err := hold.Unlock()
			if hung == 2 {
				require.NoError(t, err)
				require.Zero(t, time.Since(start))
			} else {
				require.Equal(t, limit, time.Since(start))
				require.ErrorIs(t, err, rlock.ErrOutcomeUnknown)
				require.NotErrorIs(t, err, rlock.ErrLost)
				quorum := new(redlock.QuorumError)
				require.ErrorAs(t, err, &quorum)
				require.Equal(t, 2, quorum.Granted)
			}
			require.ErrorIs(t, context.Cause(ctx), rlock.ErrReleased)
			require.ErrorIs(t, hold.Unlock(), rlock.ErrNotHeld)
			for _, s := range w.Servers[:hung] {
				s.Resume(t)
			}
			w.RequireNothingLeft(t)
		})
	}
}
