package rlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

func TestLockIsReenteredThreeDeepAndFreeAfterThreeUnlocks(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	lock := newClient(t, s, rlock.Options{}).NewLock("lock")
	outer := take(t, lock, rlock.Watchdog)
	middle := takeWith(outer.Context(), t, lock, rlock.Watchdog)
	inner := takeWith(middle.Context(), t, lock, rlock.Watchdog)
	require.Equal(t, outer.Owner(), inner.Owner())

	count := func() string { return s.DoString(t, "HGET", "lock", outer.Owner()) }
	require.Equal(t, "3", count())
	unlock(t, inner)
	require.Equal(t, "2", count())
	unlock(t, middle)
	require.Equal(t, "1", count())
	require.True(t, outer.Valid())
	unlock(t, outer)
	require.Zero(t, s.DoInt(t, "EXISTS", "lock"))
}

func TestLevelsAreReleasedInAnyOrder(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	lock := newClient(t, s, rlock.Options{}).NewLock("lock")
	outer := take(t, lock, rlock.Watchdog)
	middle := takeWith(outer.Context(), t, lock, rlock.Watchdog)
	inner := takeWith(outer.Context(), t, lock, rlock.Watchdog)

	unlock(t, outer)
	require.ErrorIs(t, outer.Err(), rlock.ErrReleased)
	require.True(t, middle.Valid())
	require.Equal(t, "2", s.DoString(t, "HGET", "lock", inner.Owner()))
	unlock(t, inner)
	require.True(t, middle.Valid())
	require.EqualValues(t, 1, s.DoInt(t, "EXISTS", "lock"))
	unlock(t, middle)
	require.Zero(t, s.DoInt(t, "EXISTS", "lock"))
}

func TestWaitingLockReentersAtOnce(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	lock := newClient(t, s, rlock.Options{}).NewLock("lock")
	ctx := rlock.WithOwner(t.Context())
	takeWith(ctx, t, lock, rlock.Watchdog)
	inner := acquired(t, lockInBackground(ctx, lock, rlock.Watchdog))
	require.Equal(t, "2", s.DoString(t, "HGET", "lock", inner.Owner()))
}

func TestOneOwnerHoldsTwoLocks(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	client := newClient(t, s, rlock.Options{})
	first := take(t, client.NewLock("first"), rlock.Watchdog)
	second := takeWith(first.Context(), t, client.NewLock("second"), rlock.Watchdog)
	unlock(t, first)
	require.Zero(t, s.DoInt(t, "EXISTS", "first"))
	require.Equal(t, map[string]string{second.Owner(): "1"}, s.DoMap(t, "HGETALL", "second"))
}

// A second section inside a first that was lost would look protected and not be.
func TestLostLockIsNotReentered(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	lock := newClient(t, s, rlock.Options{}).NewLock("lock")
	outer := take(t, lock, rlock.Watchdog)
	s.Do(t, "DEL", "lock")

	_, err := lock.TryLock(outer.Context(), rlock.NoWait, rlock.Watchdog)
	require.ErrorIs(t, err, rlock.ErrLost)
	require.ErrorIs(t, outer.Err(), rlock.ErrLost)
	require.False(t, outer.Valid())
	require.Zero(t, s.DoInt(t, "EXISTS", "lock"))
}

func TestNestedShorterLeaseDoesNotShortenTheTTL(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	lock := newClient(t, s, rlock.Options{}).NewLock("lock")
	outer := take(t, lock, time.Minute)
	deadline := outer.Deadline()
	inner := takeWith(outer.Context(), t, lock, time.Second)
	require.Greater(t, s.DoInt(t, "PTTL", "lock"), int64(50_000))
	require.Equal(t, deadline, outer.Deadline())
	require.Equal(t, deadline, inner.Deadline(), "what the owner has is one lease")
}

func TestNestedLongerLeaseLengthensTheTTL(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	lock := newClient(t, s, rlock.Options{}).NewLock("lock")
	outer := take(t, lock, time.Second)
	takeWith(outer.Context(), t, lock, time.Minute)
	require.Greater(t, s.DoInt(t, "PTTL", "lock"), int64(50_000))
	require.Greater(t, time.Until(outer.Deadline()), 50*time.Second)
}

func TestPartialUnlockDoesNotShortenTheTTL(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	lock := newClient(t, s, rlock.Options{}).NewLock("lock")
	outer := take(t, lock, time.Second)
	inner := takeWith(outer.Context(), t, lock, time.Minute)
	unlock(t, inner)
	require.Greater(t, s.DoInt(t, "PTTL", "lock"), int64(50_000))
	require.Greater(t, time.Until(outer.Deadline()), 50*time.Second)
}
