package main

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLockNamesAreThoseOfLock4j(t *testing.T) {
	// Read from lock4j-core 2.2.7; the test beside Java proves the one that the shop uses.
	keys := func(in string) []string { return []string{in, "x"} }
	require.Equal(t, "lock4j:com.acme.Pointsadd#ada.x",
		Lock4j[string]{Method: "com.acme.Pointsadd", Keys: keys}.LockName("ada"))
	require.Equal(t, "lock4j:points#ada.x",
		Lock4j[string]{Name: "points", Method: "com.acme.Pointsadd", Keys: keys}.LockName("ada"))
	require.Equal(t, "lock4j:points#", Lock4j[string]{Name: "points"}.LockName("ada"))
}

func TestWrappedFunctionRunsUnderItsLock(t *testing.T) {
	t.Parallel()
	shop, redis, _ := newShop(t, map[string]int64{})
	setting := Lock4j[string]{Name: "greet", Expire: time.Minute}
	greet := Wrap(redis.Client(), setting, func(ctx context.Context, in string) (string, error) {
		held, err := redis.Client().NewLock("lock4j:greet#").IsHeld(ctx)
		require.NoError(t, err)
		require.True(t, held)
		return "hello " + in, nil
	})
	greeting, err := greet(t.Context(), "ada")
	require.NoError(t, err)
	require.Equal(t, "hello ada", greeting)

	points, err := shop.AddPoints(t.Context(), Award{Customer: "ada", Points: 3})
	require.NoError(t, err)
	require.EqualValues(t, 3, points)
}
