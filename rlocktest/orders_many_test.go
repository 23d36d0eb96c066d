//go:build redis && !race

package rlocktest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/rlocktest"
)

func TestOrdersOfThousandsOfLocksHeldAtOnceAreChecked(t *testing.T) {
	t.Parallel()
	errors := rehearse(t, func(t testing.TB, redis *rlocktest.Redis) {
		takeInOrder(t, redis, numbered(2000)...)
		takeInOrder(t, redis, "lock:1999", "other")
		takeInOrder(t, redis, "other", "lock:0")
	})
	require.Len(t, errors, 1)
	require.Contains(t, errors[0], `"lock:0"`)
	require.Contains(t, errors[0], `"lock:1999"`)
	require.Contains(t, errors[0], `"other"`)
}
