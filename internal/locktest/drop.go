package locktest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/rlock"
)

// Dropping runs f in a function of its own, so that nothing of it stays on the stack.
//
//go:noinline
func Dropping(f func()) { f() }

// AcquireUnkept acquires a lock with the watchdog.
func AcquireUnkept(ctx context.Context, t testing.TB, l rlock.Locker) *rlock.Hold {
	t.Helper()
	hold, err := l.TryLock(ctx, rlock.NoWait, rlock.Watchdog)
	require.NoError(t, err)
	return hold
}
