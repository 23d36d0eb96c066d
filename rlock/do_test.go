package rlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/rlock"
)

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
