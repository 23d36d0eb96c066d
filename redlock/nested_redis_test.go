//go:build redis

package redlock_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/redlock"
	"holdfast/rlock"
)

func TestWatchdogWorksWhileALevelWantsIt(t *testing.T) {
	t.Parallel()
	const lease = 6 * time.Second
	servers, clients := startFive(t, rlock.Options{WatchdogLease: lease})
	lock := redlock.NewOn(name, atOnce, clients...)
	hold := take(t, lock, lease)
	nested := takeWith(hold.Context(), t, lock, rlock.Watchdog)
	before := hold.Deadline()
	eventually(t,
		func() bool { return hold.Err() != nil || hold.Deadline().After(before.Add(lease)) },
		"it is renewed")
	require.True(t, hold.Valid())
	unlock(t, nested)
	require.True(t, hold.Valid())
	released := time.Now()
	lostTo(t, hold, " of 5 nodes, 3 are needed")
	require.Less(t, time.Since(released), lease+promptly, "renewed although no level wants it")
	waitUntilFree(t, servers...)
}

func TestGoroutinesOfOneOwnerCountTheirLevelsRight(t *testing.T) {
	t.Parallel()
	servers, clients := startFive(t, rlock.Options{WatchdogLease: 6 * time.Second})
	lock := redlock.NewOn(name, atOnce, clients...)
	other := redlock.NewOn(name, atOnce, newClients(t, servers, rlock.Options{})...)
	ctx := rlock.WithOwner(t.Context())
	var running sync.WaitGroup
	for worker := range 6 {
		running.Go(func() {
			for range 30 {
				lease := longLease
				if worker%2 == 0 {
					lease = rlock.Watchdog
				}
				hold, err := lock.Lock(ctx, lease)
				if err != nil {
					t.Error(err)
					return
				}
				// Another goroutine of the owner may have released it, as the innermost one.
				if valid, err := hold.Valid(), hold.Err(); !valid &&
					!errors.Is(err, rlock.ErrReleased) {
					t.Errorf("a level is not valid: %v", err)
				}
				if another, err := other.TryLock(t.Context(), rlock.NoWait, longLease); err == nil {
					if hold.Valid() && another.Valid() && hold.Valid() {
						t.Error("another owner holds it at the same time")
					}
					if err := another.Unlock(t.Context()); err != nil {
						t.Error(err)
					}
				}
				if worker%3 == 0 {
					err = lock.Unlock(ctx)
				} else {
					err = hold.Unlock(ctx)
				}
				// A release with only the context may have taken this goroutine's level as the
				// innermost one; then another one is left for it.
				for range 100 {
					if errors.Is(err, rlock.ErrNotHeld) {
						err = lock.Unlock(ctx)
					}
				}
				if err != nil {
					t.Errorf("%v, %v", err, hold.Err())
				}
			}
		})
	}
	running.Wait()
	waitUntilFree(t, servers...)
	require.ErrorIs(t, lock.Unlock(ctx), rlock.ErrNotHeld)
}
