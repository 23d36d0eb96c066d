package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWorkersShareTheStockAndTheNights(t *testing.T) {
	t.Parallel()
	const workers, rounds = 3, 6
	shop, _, data := newShop(t, map[string]int64{"stock:book": 8, "stock:pen": 8, "stock:cup": 8})
	r, err := work(t.Context(), shop, workers, rounds)
	require.NoError(t, err)
	require.Equal(t, workers*rounds/raisesANight, r["nights"])
	require.Zero(t, r["inconsistent"])
	require.EqualValues(t, workers*rounds, data.numbers["points:ada"])
	require.EqualValues(t, workers*rounds, data.numbers["price:net"])
	var stock, sold int64
	for _, sku := range skus {
		stock += data.numbers["stock:"+sku]
		sold += data.numbers["sold:"+sku]
	}
	require.EqualValues(t, r["reserved"], sold)
	require.EqualValues(t, 24, stock+sold)
}
