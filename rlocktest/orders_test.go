package rlocktest_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/rlocktest"
)

// numbered returns names of locks.
func numbered(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("lock:%d", i))
	}
	return names
}

func TestTenCirclesAreReportedOfMany(t *testing.T) {
	t.Parallel()
	names := numbered(40)
	backward := slices.Clone(names)
	slices.Reverse(backward)
	errors := rehearse(t, func(t testing.TB, redis *rlocktest.Redis) {
		takeInOrder(t, redis, names...)
		takeInOrder(t, redis, backward...)
	})
	require.Len(t, errors, 11)
	slices.Sort(errors[:10])
	require.Len(t, slices.Compact(errors[:10]), 10, "one circle twice")
	require.Contains(t, errors[10], "more circles than these 10")
}

func TestCirclesApartAreEachReportedTheShortestFirst(t *testing.T) {
	t.Parallel()
	errors := rehearse(t, func(t testing.TB, redis *rlocktest.Redis) {
		takeInOrder(t, redis, "a", "b")
		takeInOrder(t, redis, "b", "c")
		takeInOrder(t, redis, "c", "a", "x")
		takeInOrder(t, redis, "x", "y")
		takeInOrder(t, redis, "y", "x", "z")
	})
	requireProblems(t, errors, []string{`"x" (`, `"y" (`}, []string{`"a" (`, `"b" (`, `"c" (`})
}
