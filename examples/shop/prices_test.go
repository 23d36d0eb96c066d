package main

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReadersSeeWholePricesWhileTheyAreRaised(t *testing.T) {
	t.Parallel()
	shop, _, _ := newShop(t, map[string]int64{})
	const raises = 10
	var working sync.WaitGroup
	prices := make([]Price, raises)
	errs := make([]error, 2*raises)
	for i := range raises {
		working.Go(func() { _, errs[i] = shop.Raise(t.Context()) })
		working.Go(func() { prices[i], errs[raises+i] = shop.Price(t.Context()) })
	}
	working.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	for _, price := range prices {
		require.Equal(t, 2*price.Net, price.Gross)
	}
	price, err := shop.Price(t.Context())
	require.NoError(t, err)
	require.Equal(t, Price{Net: raises, Gross: 2 * raises}, price)
}
