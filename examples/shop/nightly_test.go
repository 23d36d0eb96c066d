package main

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNightIsClosedOnceHoweverManyTry(t *testing.T) {
	t.Parallel()
	shop, _, data := newShop(t, map[string]int64{"sold:cup": 2, "sold:pen": 3})
	var closed atomic.Int32
	var instances sync.WaitGroup
	for range 10 {
		instances.Go(func() {
			if here, err := shop.Close(t.Context(), "monday"); err == nil && here {
				closed.Add(1)
			}
		})
	}
	instances.Wait()
	require.EqualValues(t, 1, closed.Load())
	require.EqualValues(t, 6, data.numbers["closed:monday"])
}
