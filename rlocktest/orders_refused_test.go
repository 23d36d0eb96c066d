package rlocktest_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/rlock"
	"holdfast/rlocktest"
)

// takeTwo takes a lock and wants another one while it has the first. It returns the error of the
// second, and releases all.
func takeTwo(ctx context.Context, t testing.TB, first, second rlock.Locker, both func(),
	wait time.Duration) error {
	t.Helper()
	outer, err := first.Lock(ctx, time.Minute)
	require.NoError(t, err)
	defer func() { require.NoError(t, outer.Unlock(ctx)) }()
	both()
	inner, err := second.TryLock(outer.Context(), wait, time.Minute)
	if err == nil {
		require.NoError(t, inner.Unlock(ctx))
	}
	return err
}

func TestCallThatIsRefusedAsADeadlockFailsTheTest(t *testing.T) {
	t.Parallel()
	errors := rehearse(t, func(t testing.TB, redis *rlocktest.Redis) {
		a, b := redis.Client().NewLock("a"), redis.Client().NewLock("b")
		locked, proceed := make(chan struct{}), make(chan struct{})
		done := make(chan error)
		go func() {
			//nolint:testifylint // the test ends if its goroutine does
			done <- takeTwo(t.Context(), t, a, b, func() { close(locked); <-proceed }, rlock.Forever)
		}()
		<-locked
		err := takeTwo(t.Context(), t, b, a, func() { close(proceed); redis.AwaitWaiter("b") },
			rlock.Forever)
		require.ErrorIs(t, err, rlock.ErrDeadlock) // a program may take it for "somebody has it"
		require.NoError(t, <-done)
	})
	requireProblems(t, errors, []string{"opposite orders", `"a" (`, `"b" (`,
		"orders_refused_test.go:"})
}

func TestOrderOfACallThatDidNotGetItsLockCounts(t *testing.T) {
	t.Parallel()
	errors := rehearse(t, func(t testing.TB, redis *rlocktest.Redis) {
		takeInOrder(t, redis, "a", "b")
		free := redis.Busy("a")
		b := redis.Client().NewLock("b")
		err := takeTwo(t.Context(), t, b, redis.Client().NewLock("a"), func() {}, rlock.NoWait)
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
		free()
	})
	requireProblems(t, errors, []string{"opposite orders", `"a" (`, `"b" (`})
}
