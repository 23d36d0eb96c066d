package main

import (
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
