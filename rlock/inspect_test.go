package rlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

func TestLookingAtAFreeLock(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	lock := newClient(t, s, rlock.Options{}).NewLock("lock")
	ctx := rlock.WithOwner(t.Context())
	info, err := lock.Info(ctx)
	require.NoError(t, err)
	require.Equal(t, rlock.Info{Name: "lock"}, info)
	requireLook(t, lock, look{})
}

func TestLookingAtAHeldLock(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	lock := newClient(t, s, rlock.Options{}).NewLock("lock")
	hold := take(t, lock, 30*time.Second)
	takeWith(hold.Context(), t, lock, 30*time.Second)
	elsewhere := newClient(t, s, rlock.Options{}).NewLock("lock")
	for _, l := range []*rlock.Lock{lock, elsewhere} {
		info, err := l.Info(t.Context())
		require.NoError(t, err)
		require.InDelta(t, 30*time.Second, info.TTL, float64(5*time.Second))
		info.TTL = 0
		require.Equal(t, rlock.Info{Name: "lock", Locked: true, Owner: hold.Owner(), Count: 2}, info)
		requireLook(t, l, look{locked: true, ttl: true})
	}
	count, err := lock.HoldCount(hold.Context())
	require.NoError(t, err)
	require.Equal(t, 2, count)
	held, err := lock.IsHeld(hold.Context())
	require.NoError(t, err)
	require.True(t, held)
	// The token of one client means nothing to another.
	held, err = elsewhere.IsHeld(hold.Context())
	require.NoError(t, err)
	require.False(t, held)
}

// look is what a lock looks like to somebody who does not hold it.
type look struct{ locked, ttl bool }

func requireLook(t *testing.T, l *rlock.Lock, want look) {
	t.Helper()
	locked, err := l.IsLocked(t.Context())
	require.NoError(t, err)
	ttl, err := l.TTL(t.Context())
	require.NoError(t, err)
	require.Equal(t, want, look{locked, ttl > 0})
	for _, ctx := range []struct{ owner bool }{{false}, {true}} {
		asker := t.Context()
		if ctx.owner {
			asker = rlock.WithOwner(asker)
		}
		count, err := l.HoldCount(asker)
		require.NoError(t, err)
		require.Zero(t, count)
		held, err := l.IsHeld(asker)
		require.NoError(t, err)
		require.False(t, held)
	}
}

func TestLookingAtALockWithoutExpiry(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	lock := newClient(t, s, rlock.Options{}).NewLock("lock")
	s.Do(t, "HSET", "lock", "another:7", "3")
	info, err := lock.Info(t.Context())
	require.NoError(t, err)
	require.Equal(t, rlock.Info{Name: "lock", Locked: true, Owner: "another:7", Count: 3, TTL: rlock.NoExpiry}, info)
}

func TestLookingAtAReadWriteLockTellsItsMode(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	lock := newClient(t, s, rlock.Options{}).NewLock("lock")
	s.Do(t, "HSET", "lock", "mode", "read", "another:7", "1")
	info, err := lock.Info(t.Context())
	require.NoError(t, err)
	require.Equal(t, "read", info.Mode)
	require.Equal(t, "another:7", info.Owner)
}

func TestLookingChangesNothing(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	lock := newClient(t, s, rlock.Options{}).NewLock("lock")
	hold := take(t, lock, 30*time.Second)
	before, ttl := s.DoMap(t, "HGETALL", "lock"), s.DoInt(t, "PEXPIRETIME", "lock")
	_, err := lock.Info(hold.Context())
	require.NoError(t, err)
	require.Equal(t, before, s.DoMap(t, "HGETALL", "lock"))
	require.Equal(t, ttl, s.DoInt(t, "PEXPIRETIME", "lock"))
}
