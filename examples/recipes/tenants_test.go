package recipes

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/rlocktest"
)

func TestTenantsOfOtherPodsAreSkipped(t *testing.T) {
	redis := rlocktest.New(t)
	redis.Busy("tenant:b")
	var mu sync.Mutex
	var served []string
	eachTenant(t.Context(), redis.Client(), []string{"a", "b", "c"},
		func(_ context.Context, tenant string) error {
			mu.Lock()
			defer mu.Unlock()
			served = append(served, tenant)
			return nil
		})
	require.ElementsMatch(t, []string{"a", "c"}, served)
}
