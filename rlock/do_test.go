package rlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

var errWork = errors.New("work failed")

func TestDoRunsUnderTheLockAndReleasesIt(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	onEveryKind(t, func(t *testing.T, k kind) {
		lock := k.lock(newClient(t, s, rlock.Options{}), k.name)
		ran := false
		err := rlock.Do(
			t.Context(),
			lock,
			rlock.NoWait,
			rlock.Watchdog,
			func(ctx context.Context) error {
				ran = true
				require.EqualValues(t, 1, s.DoInt(t, "EXISTS", k.name))
				nothing := func(context.Context) error { return nil }
				return rlock.Do(ctx, lock, rlock.NoWait, rlock.Watchdog, nothing) // re-enters
			},
		)
		require.NoError(t, err)
		require.True(t, ran)
		requireFree(t, s, k.name)
	})
}

func TestDoReturnsTheErrorOfItsFunction(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	onEveryKind(t, func(t *testing.T, k kind) {
		lock := k.lock(newClient(t, s, rlock.Options{}), k.name)
		err := rlock.Do(t.Context(), lock, rlock.NoWait, rlock.Watchdog,
			func(context.Context) error { return errWork })
		require.Equal(t, errWork, err, "not as it is")
		requireFree(t, s, k.name)
	})
}

func TestDoDoesNotRunWithoutTheLock(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	onEveryContest(t, func(t *testing.T, k kind) {
		client := newClient(t, s, rlock.Options{})
		hold := take(t, k.contender(client, k.name), rlock.Watchdog)
		lock := k.lock(client, k.name)
		err := rlock.Do(
			t.Context(),
			lock,
			rlock.NoWait,
			rlock.Watchdog,
			func(context.Context) error {
				t.Error("called without the lock")
				return nil
			},
		)
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
		unlock(t, hold)
	})
}

func TestDoReleasesWhenItsFunctionPanics(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	onEveryKind(t, func(t *testing.T, k kind) {
		lock := k.lock(newClient(t, s, rlock.Options{}), k.name)
		require.PanicsWithValue(t, "broken", func() {
			_ = rlock.Do(t.Context(), lock, rlock.NoWait, rlock.Watchdog,
				func(context.Context) error { panic("broken") })
		})
		requireFree(t, s, k.name)
	})
}

func TestDoReportsALossThatItsFunctionDidNotNotice(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	withoutNesting(t, func(t *testing.T, k kind) {
		t.Parallel()
		lock := k.lock(newClient(t, s, rlock.Options{}), k.name)
		err := rlock.Do(
			t.Context(),
			lock,
			rlock.NoWait,
			time.Second,
			func(ctx context.Context) error {
				<-ctx.Done()
				return errWork
			},
		)
		require.ErrorIs(t, err, rlock.ErrLost)
		require.ErrorIs(t, err, errWork)
	})
}

func TestDoReportsALossThatItsFunctionReturnsOnce(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	lock := newClient(t, s, rlock.Options{}).NewLock("order")
	err := rlock.Do(t.Context(), lock, rlock.NoWait, time.Second, func(ctx context.Context) error {
		<-ctx.Done()
		return context.Cause(ctx)
	})
	require.ErrorIs(t, err, rlock.ErrLost)
	require.NotContains(t, err.Error(), "\n")
}
