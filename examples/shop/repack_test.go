package main

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRepackTurnsOneArticleIntoAnother(t *testing.T) {
	t.Parallel()
	shop, _, data := newShop(t, map[string]int64{"stock:pen": 3})
	require.NoError(t, shop.Repack(t.Context(), "pen", "cup", 2))
	require.ErrorIs(t, shop.Repack(t.Context(), "pen", "cup", 2), ErrSoldOut)
	require.Equal(t, map[string]int64{"stock:pen": 1, "stock:cup": 2}, data.numbers)
}

func TestRepacksInOppositeDirectionsDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	shop, _, data := newShop(t, map[string]int64{"stock:pen": 20, "stock:cup": 20})
	var both sync.WaitGroup
	errs := make([]error, 2)
	for i, direction := range [][2]string{{"pen", "cup"}, {"cup", "pen"}} {
		both.Go(func() {
			for range 10 {
				if err := shop.Repack(t.Context(), direction[0], direction[1], 1); err != nil {
					errs[i] = err
				}
			}
		})
	}
	both.Wait()
	require.Equal(t, []error{nil, nil}, errs)
	require.Equal(t, map[string]int64{"stock:pen": 20, "stock:cup": 20}, data.numbers)
}
