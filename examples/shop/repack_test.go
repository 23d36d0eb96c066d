package main

import (
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
