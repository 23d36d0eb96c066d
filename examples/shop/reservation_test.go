package main

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/rlock"
)

func TestReserveMovesWhatIsInStockToWhatIsSold(t *testing.T) {
	t.Parallel()
	shop, _, data := newShop(t, map[string]int64{"stock:cup": 3})
	require.NoError(t, shop.Reserve(t.Context(), "cup", 2))
	require.ErrorIs(t, shop.Reserve(t.Context(), "cup", 2), ErrSoldOut)
	require.Equal(t, map[string]int64{"stock:cup": 1, "sold:cup": 2}, data.numbers)
}

func TestReservationsAtOnceSellNothingTwice(t *testing.T) {
	t.Parallel()
	shop, _, data := newShop(t, map[string]int64{"stock:cup": 5})
	var customers sync.WaitGroup
	for range 10 {
		customers.Go(func() { _ = shop.Reserve(t.Context(), "cup", 1) }) // half of them: ErrSoldOut
	}
	customers.Wait()
	require.Equal(t, map[string]int64{"stock:cup": 0, "sold:cup": 5}, data.numbers)
}

func TestReserveWaitsUntilItsContextEnds(t *testing.T) {
	t.Parallel()
	shop, redis, data := newShop(t, map[string]int64{"stock:cup": 1})
	redis.Busy("shop:sku:cup")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		redis.AwaitWaiter("shop:sku:cup")
		cancel()
	}()
	err := shop.Reserve(ctx, "cup", 1)
	require.ErrorIs(t, err, rlock.ErrNotAcquired)
	require.ErrorIs(t, err, context.Canceled)
	require.EqualValues(t, 1, data.numbers["stock:cup"])
}

func TestReserveStopsWhenItsLockIsLost(t *testing.T) {
	t.Parallel()
	shop, redis, data := newShop(t, map[string]int64{"stock:cup": 1})
	data.onSet = func(string) {
		data.onSet = nil
		redis.Lose("shop:sku:cup")
	}
	require.ErrorIs(t, shop.Reserve(t.Context(), "cup", 1), rlock.ErrLost)
	require.Equal(t, map[string]int64{"stock:cup": 1}, data.numbers, "wrote without its lock")
}
