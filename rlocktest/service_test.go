package rlocktest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/rlock"
	"holdfast/rlocktest"
)

// These test Shop as a user would.

func TestOrderIsShippedByOneAtATime(t *testing.T) {
	redis := rlocktest.New(t)
	here, elsewhere := Shop{redis.Client()}, Shop{redis.NewClient(rlock.Options{})}
	require.NoError(t, here.Ship(t.Context(), "42", func(ctx context.Context) error {
		require.ErrorIs(t, elsewhere.Ship(t.Context(), "42", pack), errBusy)
		require.NoError(t, elsewhere.Ship(t.Context(), "43", pack))
		return nil
	}))
	require.NoError(t, elsewhere.Ship(t.Context(), "42", pack))
}

func TestErrorOfPackingIsReturnedAndTheLockReleased(t *testing.T) {
	redis := rlocktest.New(t)
	shop := Shop{redis.Client()}
	empty := errors.New("the box is empty")
	require.Equal(t, empty, shop.Ship(t.Context(), "42", func(context.Context) error { return empty }))
	redis.Busy("order:42") // fails if it is not free
}

func TestPackingThatTakesAnHourKeepsItsLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		redis := rlocktest.New(t)
		shop := Shop{redis.Client()}
		require.NoError(t, shop.Ship(t.Context(), "42", func(ctx context.Context) error {
			time.Sleep(time.Hour)
			return ctx.Err()
		}))
	})
}

func TestPackingEndsWhenRedisIsDownForTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		redis := rlocktest.New(t)
		shop := Shop{redis.Client()}
		start := time.Now()
		err := shop.Ship(t.Context(), "42", func(ctx context.Context) error {
			redis.Down()
			<-ctx.Done()
			return context.Cause(ctx)
		})
		require.ErrorIs(t, err, rlock.ErrLost)
		require.InDelta(t, 30*time.Second, time.Since(start), float64(10*time.Second))
	})
}
