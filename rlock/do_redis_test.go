//go:build redis

package rlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

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
