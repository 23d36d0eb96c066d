package rlock_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

func TestUnlockByAnotherOwnerIsRefused(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	client := newClient(t, s, rlock.Options{})
	lock := client.NewLock("lock")
	hold := take(t, lock, rlock.Watchdog)

	require.ErrorIs(t, lock.Unlock(rlock.WithOwner(t.Context())), rlock.ErrNotHeld)
	require.ErrorIs(t, lock.Unlock(t.Context()), rlock.ErrNotHeld, "no owner at all")
	elsewhere := newClient(t, s, rlock.Options{}).NewLock("lock")
	require.ErrorIs(t, elsewhere.Unlock(hold.Context()), rlock.ErrNotHeld, "the same token of another client")
	require.Equal(t, map[string]string{hold.Owner(): "1"}, s.DoMap(t, "HGETALL", "lock"))
	require.True(t, hold.Valid())
}

func TestSecondUnlockOfAHoldIsRefused(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	lock := newClient(t, s, rlock.Options{}).NewLock("lock")
	outer := take(t, lock, rlock.Watchdog)
	inner := takeWith(outer.Context(), t, lock, rlock.Watchdog)
	unlock(t, inner)
	require.ErrorIs(t, inner.Unlock(t.Context()), rlock.ErrNotHeld)
	require.Equal(t, "1", s.DoString(t, "HGET", "lock", outer.Owner()), "the second unlock must not cost the outer level")

	unlock(t, outer)
	other := take(t, lock, rlock.Watchdog)
	require.ErrorIs(t, outer.Unlock(t.Context()), rlock.ErrNotHeld)
	require.True(t, other.Valid())
	require.Equal(t, map[string]string{other.Owner(): "1"}, s.DoMap(t, "HGETALL", "lock"))
}

func TestOfManyUnlocksAtOnceOneSucceeds(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	hold := take(t, newClient(t, s, rlock.Options{}).NewLock("lock"), rlock.Watchdog)
	var succeeded, refused atomic.Int32
	var running sync.WaitGroup
	for range 16 {
		running.Go(func() {
			switch err := hold.Unlock(context.Background()); {
			case err == nil:
				succeeded.Add(1)
			case isNotHeld(err):
				refused.Add(1)
			}
		})
	}
	running.Wait()
	require.EqualValues(t, 1, succeeded.Load())
	require.EqualValues(t, 15, refused.Load())
}

func TestUnlockWithoutAHoldReleasesTheInnermostLevel(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	lock := newClient(t, s, rlock.Options{}).NewLock("lock")
	ctx := rlock.WithOwner(t.Context())
	outer := takeWith(ctx, t, lock, rlock.Watchdog)
	inner := takeWith(ctx, t, lock, rlock.Watchdog)

	require.NoError(t, lock.Unlock(ctx))
	require.ErrorIs(t, inner.Err(), rlock.ErrReleased)
	require.NoError(t, outer.Err())
	require.NoError(t, lock.Unlock(ctx))
	require.ErrorIs(t, outer.Err(), rlock.ErrReleased)
	require.Zero(t, s.DoInt(t, "EXISTS", "lock"))
	require.ErrorIs(t, lock.Unlock(ctx), rlock.ErrNotHeld)
}

func TestUnlockAfterExpiryIsNeverASuccess(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	lock := newClient(t, s, rlock.Options{}).NewLock("lock")
	hold := take(t, lock, 50*time.Millisecond)
	receive(t, hold.Done(), "the hold did not end with its lease")
	require.ErrorIs(t, hold.Unlock(t.Context()), rlock.ErrLost)

	// Not even when somebody else has the lock by then, whose hold must not be touched.
	hold = take(t, waitUntilFree(t, s, lock), 50*time.Millisecond)
	receive(t, hold.Done(), "the hold did not end with its lease")
	other := take(t, waitUntilFree(t, s, lock), rlock.Watchdog)
	require.ErrorIs(t, hold.Unlock(t.Context()), rlock.ErrLost)
	require.Equal(t, map[string]string{other.Owner(): "1"}, s.DoMap(t, "HGETALL", "lock"))
}

// The server has forgotten the lock, and this client does not know it yet.
func TestUnlockOfALockThatIsGoneSaysLost(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	lock := newClient(t, s, rlock.Options{}).NewLock("lock")
	outer := take(t, lock, rlock.Watchdog)
	inner := takeWith(outer.Context(), t, lock, rlock.Watchdog)
	s.Do(t, "DEL", "lock")
	require.ErrorIs(t, inner.Unlock(t.Context()), rlock.ErrLost)
	require.ErrorIs(t, outer.Err(), rlock.ErrLost, "the levels are lost together")
	require.ErrorIs(t, outer.Unlock(t.Context()), rlock.ErrLost)
}

func TestUnlockOfALockKnownToBeLostSendsNothing(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	lock := newClient(t, s, rlock.Options{}).NewLock("lock")
	hold := take(t, lock, rlock.Watchdog)
	_, err := lock.ForceUnlock(t.Context())
	require.NoError(t, err)
	monitor := s.Monitor(t)
	require.Equal(t, hold.Err(), hold.Unlock(t.Context()))
	require.ErrorIs(t, hold.Err(), rlock.ErrLost)
	require.Empty(t, monitor.Commands(t))
}

// waitUntilFree returns lock when the server has let its key expire.
func waitUntilFree(t *testing.T, s *redistest.Server, lock *rlock.Lock) *rlock.Lock {
	t.Helper()
	eventually(t, func() bool { return s.DoInt(t, "EXISTS", lock.Name()) == 0 }, "the lock's key has expired")
	return lock
}
