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

func TestWithReturnsTheResultOfItsFunction(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	onEveryKind(t, func(t *testing.T, k kind) {
		lock := k.lock(newClient(t, s, rlock.Options{}), k.name)
		n, err := rlock.With(t.Context(), lock, rlock.Forever, rlock.Watchdog,
			func(context.Context) (int, error) { return 7, nil })
		require.NoError(t, err)
		require.Equal(t, 7, n)
		n, err = rlock.With(t.Context(), lock, rlock.NoWait, rlock.Watchdog,
			func(context.Context) (int, error) { return 7, errWork })
		require.Equal(t, errWork, err, "not as it is")
		require.Equal(t, 7, n)
		requireFree(t, s, k.name)
	})
}

// The mistake: an ErrNotAcquired of something that fn calls is taken for Do's own.
func TestErrNotRunTellsWhetherTheFunctionWasCalled(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{})
	busy := take(t, c.NewLock("busy"), longLease)
	nothing := func(context.Context) error { return nil }
	tryBusy := func(ctx context.Context) error {
		return rlock.Do(ctx, c.NewLock("busy"), rlock.NoWait, rlock.Watchdog, nothing)
	}
	err := tryBusy(t.Context())
	require.ErrorIs(t, err, rlock.ErrNotRun)
	require.ErrorIs(t, err, rlock.ErrNotAcquired)
	require.ErrorContains(t, err, "the function was not called")
	var held *rlock.HeldError
	require.ErrorAs(t, err, &held)

	err = rlock.Do(t.Context(), c.NewLock("order"), rlock.NoWait, rlock.Watchdog, tryBusy)
	require.NotErrorIs(t, err, rlock.ErrNotRun)
	require.ErrorIs(t, err, rlock.ErrNotAcquired)
	require.ErrorAs(t, err, &held)
	unlock(t, busy)

	for _, wait := range []time.Duration{rlock.NoWait, rlock.Forever} {
		err = rlock.Do(t.Context(), c.NewLock("order"), wait, 0, nothing)
		require.ErrorIs(t, err, rlock.ErrNotRun)
		require.ErrorIs(t, err, rlock.ErrInvalid)
	}
}

func TestUnlockToJoinsTheErrorOfTheRelease(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{})
	section := func(result error, lose bool) (err error) {
		hold := take(t, c.NewLock("order"), longLease)
		defer hold.UnlockTo(t.Context(), &err)
		if lose {
			_, lost := c.NewLock("order").ForceUnlock(t.Context())
			require.NoError(t, lost)
		}
		return result
	}
	require.NoError(t, section(nil, false))
	require.Equal(t, errWork, section(errWork, false))
	require.ErrorIs(t, section(nil, true), rlock.ErrLost)
	err := section(errWork, true)
	require.ErrorIs(t, err, rlock.ErrLost)
	require.ErrorIs(t, err, errWork)

	hold := take(t, c.NewLock("order"), longLease)
	_, err = c.NewLock("order").ForceUnlock(t.Context())
	require.NoError(t, err)
	err = context.Cause(hold.Context()) // which a function may return
	before := err
	hold.UnlockTo(t.Context(), &err)
	require.Equal(t, before, err, "the loss is told twice")
}

// nilLocker breaks the promises of a Locker.
type nilLocker struct{ rlock.Locker }

func (nilLocker) TryLock(context.Context, time.Duration, time.Duration) (*rlock.Hold, error) {
	return nil, nil
}

func TestDoDoesNotRunWithoutAHold(t *testing.T) {
	t.Parallel()
	err := rlock.Do(t.Context(), nilLocker{}, rlock.NoWait, rlock.Watchdog,
		func(context.Context) error { return errors.New("it ran without a lock") })
	require.ErrorIs(t, err, rlock.ErrNotRun)
	require.ErrorIs(t, err, rlock.ErrNotHeld)
}
