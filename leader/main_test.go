package leader_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"holdfast/leader"
	"holdfast/rlock"
	"holdfast/rlocktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestLockIsReleasedWhenForeignCodePanics(t *testing.T) {
	t.Parallel()
	lock := rlocktest.New(t).Client().NewLock("leader")
	candidate := leader.New(lock, leader.Options{})
	for range 2 {
		require.PanicsWithValue(t, "work", func() {
			_ = candidate.Run(t.Context(), func(context.Context) error { panic("work") })
		})
		require.False(t, candidate.IsLeader())
	}
	require.PanicsWithValue(t, "elected", func() {
		_ = leader.Run(t.Context(), lock,
			leader.Options{OnElected: func(*rlock.Hold) { panic("elected") }}, nil)
	})
	hold, err := lock.TryLock(t.Context(), rlock.NoWait, rlock.Watchdog)
	require.NoError(t, err)
	require.NoError(t, hold.Unlock())
}

func TestReadersCannotLead(t *testing.T) {
	t.Parallel()
	lock := rlocktest.New(t).Client().NewReadWriteLock("leader").Read()
	err := leader.Run(t.Context(), lock, leader.Options{}, func(context.Context) error {
		t.Error("a reader leads")
		return nil
	})
	require.ErrorIs(t, err, rlock.ErrInvalid)
	require.ErrorContains(t, err, "use another kind of lock")
}

func TestCandidateRunsOnce(t *testing.T) {
	t.Parallel()
	candidate := leader.New(rlocktest.New(t).Client().NewLock("leader"), leader.Options{})
	require.NoError(t, candidate.Run(t.Context(), func(context.Context) error {
		require.ErrorIs(t, candidate.Run(t.Context(), nil), rlock.ErrInvalid)
		require.True(t, candidate.IsLeader())
		return nil
	}))
}
