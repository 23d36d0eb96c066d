package once_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/once"
	"holdfast/rlock"
	"holdfast/rlocktest"
)

// pay charges the card once for each order, however often and wherever it is called.
func pay(ctx context.Context, client *rlock.Client, order string,
	charge func(ctx context.Context, order string, fence int64) (receipt string, err error),
) (receipt string, err error) {
	return once.Do(ctx, client, "payment:"+order, 24*time.Hour,
		func(ctx context.Context) (string, error) {
			return charge(ctx, order, once.Token(ctx))
		})
}

// The code of docs/recipes.md is the function above.
func TestRecipeRuns(t *testing.T) {
	recipes, err := os.ReadFile("../docs/recipes.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(recipes), "\n## Once\n")
	require.True(t, found)
	_, code, _ := strings.Cut(section, "```go\n")
	code, _, _ = strings.Cut(code, "```\n")
	source, err := os.ReadFile("recipe_test.go")
	require.NoError(t, err)
	require.Contains(t, string(source), "\n"+code)

	bubble(t, func(t *testing.T, redis *rlocktest.Redis) {
		down, tokens := errors.New("the bank is down"), []int64{}
		charge := func(_ context.Context, order string, fence int64) (string, error) {
			tokens = append(tokens, fence)
			time.Sleep(time.Second)
			if len(tokens) == 1 {
				return "", down
			}
			return "receipt of " + order, nil
		}
		for i := range 3 {
			receipt, err := pay(t.Context(), redis.Client(), "17", charge)
			if i == 0 {
				require.ErrorIs(t, err, down)
				continue
			}
			require.NoError(t, err)
			require.Equal(t, "receipt of 17", receipt)
		}
		require.Len(t, tokens, 2)
		require.Greater(t, tokens[1], tokens[0])
	})
}
