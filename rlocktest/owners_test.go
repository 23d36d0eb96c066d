package rlocktest_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/multilock"
	"holdfast/rlock"
	"holdfast/rlocktest"
)

// enter acquires a lock.
func enter(ctx context.Context, t testing.TB, lock rlock.Locker) *rlock.Hold {
	t.Helper()
	hold, err := lock.TryLock(ctx, 10*time.Second, rlock.Lease(time.Minute))
	require.NoError(t, err)
	return hold
}

// exit releases a hold.
func exit(t testing.TB, hold *rlock.Hold) {
	t.Helper()
	require.NoError(t, hold.Unlock())
}

// wait runs f in a goroutine of its own, and returns once it has ended.
func wait(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

// pool returns a function that has a goroutine call f, which does not descend from its caller.
func pool(t testing.TB) (call func(f func())) {
	t.Helper()
	calls := make(chan func())
	wait(func() {
		go func() {
			for f := range calls {
				f()
			}
		}()
	})
	t.Cleanup(func() { close(calls) })
	return func(f func()) {
		done := make(chan struct{})
		calls <- func() { defer close(done); f() }
		<-done
	}
}

func TestGoroutinesThatShareAnOwnerInsideOneLockFailTheTest(t *testing.T) {
	t.Parallel()
	for name, program := range map[string]func(t testing.TB, lock *rlock.Lock){
		"strangers": func(t testing.TB, lock *rlock.Lock) {
			ctx, other := rlock.WithOwner(t.Context()), pool(t)
			hold := enter(ctx, t, lock)
			other(func() { exit(t, enter(ctx, t, lock)) }) // nested by chance
			exit(t, hold)
		},
		"brothers": func(t testing.TB, lock *rlock.Lock) {
			outer := enter(t.Context(), t, lock)
			wait(func() {
				hold := enter(outer.Context(), t, lock)
				defer exit(t, hold)
				pool(t)(func() { exit(t, enter(outer.Context(), t, lock)) })
			})
			exit(t, outer)
		},
		"parent beside its child": func(t testing.TB, lock *rlock.Lock) {
			outer := enter(t.Context(), t, lock)
			var child *rlock.Hold
			wait(func() { child = enter(outer.Context(), t, lock) })
			exit(t, enter(outer.Context(), t, lock))
			exit(t, child)
			exit(t, outer)
		},
		"child that outlasts its parent": func(t testing.TB, lock *rlock.Lock) {
			outer := enter(t.Context(), t, lock)
			ctx := rlock.EnsureOwner(outer.Context())
			var inner *rlock.Hold
			wait(func() { inner = enter(ctx, t, lock) })
			exit(t, outer)
			exit(t, inner)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requireProblems(t, rehearse(t, func(t testing.TB, redis *rlocktest.Redis) {
				program(t, redis.Client().NewLock("order:42"))
			}), []string{`"order:42": held by two goroutines with the same owner`,
				"owners_test.go:", "called at", "rlock.Detached"})
			require.Empty(t, rehearse(t, func(t testing.TB, redis *rlocktest.Redis) {
				redis.Allow(rlocktest.Owners)
				program(t, redis.Client().NewLock("order:42"))
			}))
		})
	}
}

func TestSectionsInsideEachOtherPass(t *testing.T) {
	t.Parallel()
	require.Empty(t, rehearse(t, func(t testing.TB, redis *rlocktest.Redis) {
		client := redis.Client()
		locks := multilock.NewOn(client, "a", "b")
		outer := enter(t.Context(), t, locks)
		other := pool(t)
		other(func() { exit(t, enter(outer.Context(), t, client.NewLock("a"))) })
		for range 2 { // one after the other
			wait(func() {
				inner := enter(outer.Context(), t, locks)
				defer exit(t, inner)
				other(func() { exit(t, enter(inner.Context(), t, locks)) })
			})
		}
		exit(t, outer)

		// The goroutine that has started another one waits for it, also with an owner's context.
		ctx, lock := rlock.WithOwner(t.Context()), client.NewLock("c")
		outer = enter(ctx, t, lock)
		wait(func() {
			inner := enter(ctx, t, lock)
			wait(func() { exit(t, enter(ctx, t, lock)) })
			exit(t, inner)
		})
		exit(t, outer)

		// One goroutine may release in any order.
		outer = enter(ctx, t, lock)
		inner := enter(ctx, t, lock)
		exit(t, outer)
		exit(t, inner)

		page := client.NewReadWriteLock("page").Read()
		reader := enter(ctx, t, page)
		other(func() { exit(t, enter(ctx, t, page)) })
		exit(t, reader)
	}))
}
