package rlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// info returns what the lock shows of an owner with that many levels, besides the TTL.
func (k kind) info(name, owner string, levels int, token int64) rlock.Info {
	info := rlock.Info{
		Name:   name,
		Locked: true,
		Owner:  owner,
		Count:  levels,
		Mode:   k.mode,
		Token:  token,
	}
	if k.shared {
		info.Readers = map[string]int{owner: levels}
	}
	return info
}

// lookAt returns what the lock shows. An empty queue counts as none.
func lookAt(t *testing.T, l *rlock.Lock) rlock.Info {
	t.Helper()
	info, err := l.Info(t.Context())
	require.NoError(t, err)
	if len(info.Queue) == 0 {
		info.Queue = nil
	}
	return info
}

func TestLookingAtAFreeLock(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	withoutNesting(t, func(t *testing.T, k kind) {
		lock := k.lock(newClient(t, s, rlock.Options{}), k.name)
		require.Equal(t, rlock.Info{Name: k.name}, lookAt(t, lock))
		requireLook(t, lock, look{})

		hold := take(t, lock, rlock.Watchdog)
		unlock(t, hold)
		require.Equal(t, rlock.Info{Name: k.name, Token: hold.Token()}, lookAt(t, lock))
		requireLook(t, lock, look{})
	})
}

func TestLookingAtAHeldLock(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	onEveryKind(t, func(t *testing.T, k kind) {
		lock := k.lock(newClient(t, s, rlock.Options{}), k.name)
		hold := take(t, lock, 30*time.Second)
		takeWith(hold.Context(), t, lock, 30*time.Second)
		elsewhere := k.lock(newClient(t, s, rlock.Options{}), k.name)
		for _, l := range []*rlock.Lock{lock, elsewhere} {
			info := lookAt(t, l)
			require.InDelta(t, 30*time.Second, info.TTL, float64(5*time.Second))
			info.TTL = 0
			require.Equal(t, k.info(k.name, hold.Owner(), 2, hold.Token()), info)
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
	})
}

// A waiter does not hold the lock, and is shown whom it waits for.
func TestLookingAtALockThatIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	onEveryContest(t, func(t *testing.T, k kind) {
		client := newClient(t, s, rlock.Options{})
		contender, lock := k.contender(client, k.name), k.lock(client, k.name)
		hold := take(t, contender, 30*time.Second)
		waiter := k.parked(t, s, lock)
		info := lookAt(t, contender)
		require.Equal(t, hold.Owner(), info.Owner)
		require.Equal(t, 1, info.Count)
		if k.lonely {
			require.Len(t, info.Queue, 1)
			require.Contains(t, info.Queue[0], client.ID()+":")
		} else {
			require.Nil(t, info.Queue)
		}
		unlock(t, hold)
		next := acquired(t, waiter)
		info = lookAt(t, lock)
		require.Equal(t, next.Owner(), info.Owner)
		require.Empty(t, info.Queue)
		unlock(t, next)
	})
}

// look is what a lock shows to another owner.
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
	withoutNesting(t, func(t *testing.T, k kind) {
		lock := k.lock(newClient(t, s, rlock.Options{}), k.name)
		plant(t, s, k.name, k.hash("another:7", 3))
		want := k.info(k.name, "another:7", 3, 0)
		want.TTL = rlock.NoExpiry
		require.Equal(t, want, lookAt(t, lock))
	})
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
