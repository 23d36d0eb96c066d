package recipes

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/rlock"
	"holdfast/rlocktest"
)

func TestBatchStopsWhenItsLockIsLost(t *testing.T) {
	redis := rlocktest.New(t)
	var written []string
	err := batch(t.Context(), redis.Client().NewLock("batch"), []string{"a", "b", "c"},
		func(_ context.Context, row string) error { // it ignores its context
			written = append(written, row)
			if row == "b" {
				redis.Lose("batch")
			}
			return nil
		})
	require.ErrorIs(t, err, rlock.ErrLost)
	require.Equal(t, []string{"a", "b"}, written)
}

func TestBatchFinishesTheRowOnSIGTERM(t *testing.T) {
	redis := rlocktest.New(t)
	stop, terminate := context.WithCancel(t.Context())
	lock := redis.Client().NewLock("batch")
	var written []string
	err := batch(stop, lock, []string{"a", "b", "c"},
		func(ctx context.Context, row string) error {
			if row == "b" {
				terminate()
			}
			held, err := lock.IsHeld(ctx)
			require.NoError(t, err)
			require.True(t, held)
			written = append(written, row)
			return nil
		})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, []string{"a", "b"}, written)
}
