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
	lock := newClient(t, s, rlock.Options{}).NewLock("lock")
	ran := false
	err := rlock.Do(t.Context(), lock, rlock.NoWait, rlock.Watchdog, func(ctx context.Context) error {
		ran = true
		require.EqualValues(t, 1, s.DoInt(t, "EXISTS", "lock"))
		return rlock.Do(ctx, lock, rlock.NoWait, rlock.Watchdog, func(context.Context) error { return nil }) // re-enters
	})
	require.NoError(t, err)
	require.True(t, ran)
	require.Zero(t, s.DoInt(t, "EXISTS", "lock"))
}

func TestDoReturnsTheErrorOfItsFunction(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	lock := newClient(t, s, rlock.Options{}).NewLock("lock")
	err := rlock.Do(t.Context(), lock, rlock.NoWait, rlock.Watchdog, func(context.Context) error { return errWork })
	require.ErrorIs(t, err, errWork)
	require.Zero(t, s.DoInt(t, "EXISTS", "lock"))
}

func TestDoDoesNotRunWithoutTheLock(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	lock := newClient(t, s, rlock.Options{}).NewLock("lock")
	take(t, lock, rlock.Watchdog)
	err := rlock.Do(t.Context(), lock, rlock.NoWait, rlock.Watchdog, func(context.Context) error {
		t.Error("called without the lock")
		return nil
	})
	require.ErrorIs(t, err, rlock.ErrNotAcquired)
}

func TestDoReleasesWhenItsFunctionPanics(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	lock := newClient(t, s, rlock.Options{}).NewLock("lock")
	require.PanicsWithValue(t, "broken", func() {
		_ = rlock.Do(t.Context(), lock, rlock.NoWait, rlock.Watchdog, func(context.Context) error { panic("broken") })
	})
	require.Zero(t, s.DoInt(t, "EXISTS", "lock"))
}

func TestDoReportsALossThatItsFunctionDidNotNotice(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	lock := newClient(t, s, rlock.Options{}).NewLock("lock")
	err := rlock.Do(t.Context(), lock, rlock.NoWait, 50*time.Millisecond, func(ctx context.Context) error {
		<-ctx.Done()
		return errWork
	})
	require.ErrorIs(t, err, rlock.ErrLost)
	require.ErrorIs(t, err, errWork)
}
