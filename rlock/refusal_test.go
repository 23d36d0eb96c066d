//go:build redis

package rlock_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/faults"
	"holdfast/internal/redistest"
	"holdfast/rlock"
)

func TestServerOutOfMemoryRefusesALockAtOnce(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{})
	holds := make(map[string]*rlock.Hold)
	for _, k := range kinds {
		holds[k.name] = take(t, k.lock(c, k.name), rlock.Watchdog)
	}
	befall(t, s, "is out of memory")

	onEveryKind(t, func(t *testing.T, k kind) {
		requireRefusedAtOnce(t, k.lock(c, "another "+k.name), "OOM")
		keys, _ := left(s, "another "+k.name)
		require.Empty(t, keys)
		_, err := k.lock(c, k.name).Lock(holds[k.name].Context(), rlock.Watchdog)
		requireRefusal(t, err, "OOM")
		require.True(t, holds[k.name].Valid())
		require.Equal(t, k.hash(holds[k.name].Owner(), 1), s.DoMap(t, "HGETALL", k.name))
	})
}

func TestServerOutOfMemoryStillRenewsAndReleases(t *testing.T) {
	t.Parallel()
	const lease = 3 * time.Second
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{WatchdogLease: lease})
	other := newClient(t, s, rlock.Options{})
	outer, inner := make(map[string]*rlock.Hold), make(map[string]*rlock.Hold)
	for _, k := range contests() {
		outer[k.name] = take(t, k.contender(c, k.name), rlock.Watchdog)
		inner[k.name] = takeWith(outer[k.name].Context(), t, k.contender(c, k.name), rlock.Watchdog)
	}
	end := befall(t, s, "is out of memory")

	requireKept(t, slices.Collect(maps.Values(outer)), 2*lease, "not renewed")
	onEveryContest(t, func(t *testing.T, k kind) {
		unlock(t, inner[k.name])
		require.True(t, outer[k.name].Valid())
		end() // because a full server may refuse the subscription
		// otherwise a late one would have to ask
		waiter := lockInBackground(t.Context(), k.lock(other, k.name), longLease)
		k.waitForListeners(t, s, k.name, 1)
		if k.grants {
			eventually(t, func() bool {
				return s.DoInt(t, "ZCARD",
					"holdfast_lock_waiters:{"+k.name+"}") == 1
			}, "not registered")
		}
		end = befall(t, s, "is out of memory")
		unlock(t, outer[k.name])
		if k.grants { // handing the lock over takes no memory
			hold := acquired(t, waiter)
			require.True(t, hold.Valid())
			require.Equal(t, k.hash(hold.Owner(), 1), s.DoMap(t, "HGETALL", k.name))
			unlock(t, hold)
			requireFree(t, s, k.name)
			return
		}
		// The waiter learns that the lock is free, but refused.
		requireRefusal(t, result(t, waiter).Err, "OOM")
		waitUntilFree(t, s, k.name)
	})
}

// Extending a lock takes no memory, however many levels it has. Adding a level does.
func TestServerOutOfMemoryStillExtends(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{})
	outer, inner := make(map[string]*rlock.Hold), make(map[string]*rlock.Hold)
	for _, k := range kinds {
		outer[k.name] = take(t, k.lock(c, k.name), 20*time.Second)
		inner[k.name] = takeWith(outer[k.name].Context(), t, k.lock(c, k.name), 10*time.Second)
	}
	befall(t, s, "is out of memory")

	onEveryKind(t, func(t *testing.T, k kind) {
		hold := outer[k.name]
		require.NoError(t, hold.Extend(t.Context(), time.Minute))
		require.Greater(t, time.Until(hold.Deadline()), 50*time.Second)
		require.Greater(t, k.lasts(t, s, k.name, hold.Owner()), int64(50_000))
		require.NoError(t, inner[k.name].Extend(t.Context(), time.Second))
		require.Greater(t, k.lasts(t, s, k.name, hold.Owner()), int64(50_000),
			"what lasts longer is not shortened")
		require.Equal(t, k.hash(hold.Owner(), 2), s.DoMap(t, "HGETALL", k.name), "it adds no level")
		_, err := k.lock(c, k.name).Lock(hold.Context(), rlock.Watchdog)
		requireRefusal(t, err, "OOM")

		s.Do(t, "DEL", k.name)
		require.ErrorIs(t, hold.Extend(t.Context(), time.Minute), rlock.ErrLost)
	})
}

// Releasing a level does not shorten what is left to the owner, whichever level had the longest
// lease.
func TestServerOutOfMemoryKeepsTheLongestLeaseOfALevel(t *testing.T) {
	t.Parallel()
	const lease = time.Second
	s := redistest.Start(t)
	c, other := newClient(t, s, rlock.Options{}), newClient(t, s, rlock.Options{})
	outer := make(map[string]*rlock.Hold)
	for _, k := range kinds {
		outer[k.name] = take(t, k.lock(c, k.name), lease)
		inner := takeWith(outer[k.name].Context(), t, k.lock(c, k.name), longLease)
		end := befall(t, s, "is out of memory")
		unlock(t, inner)
		end()
	}
	// When other readers leave, the lock lasts as long as those that stay.
	unlock(t, take(t, newReadLock(other, "read"), lease))
	<-time.After(2 * lease)
	unlock(t, take(t, newReadLock(other, "read"), lease))
	for _, k := range kinds {
		require.True(t, outer[k.name].Valid(), k.name)
		_, err := k.contender(other, k.name).TryLock(t.Context(), rlock.NoWait, time.Second)
		require.ErrorIs(t, err, rlock.ErrNotAcquired, k.name)
		unlock(t, outer[k.name])
	}
}

func TestServerThatCannotSaveRefusesALockAtOnce(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, faults.Named(t, "cannot save").Options...)
	c := newClient(t, s, rlock.Options{})
	holds := make(map[string]*rlock.Hold)
	for _, k := range kinds {
		holds[k.name] = take(t, k.lock(c, k.name), time.Minute)
	}
	befall(t, s, "cannot save")

	onEveryKind(t, func(t *testing.T, k kind) {
		requireRefusedAtOnce(t, k.lock(c, "another "+k.name), "MISCONF")
		requireRefusal(t, holds[k.name].Unlock(t.Context()), "MISCONF")
		require.ErrorIs(t, holds[k.name].Err(), rlock.ErrReleased)
	})
}

func TestReplicaRefusesALockAtOnce(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	befall(t, s, "has become a replica")
	c := newClient(t, s, rlock.Options{})
	onEveryKind(t, func(t *testing.T, k kind) {
		requireRefusedAtOnce(t, k.lock(c, k.name), "READONLY")
		_, err := k.lock(c, k.name).TryLock(t.Context(), longWait, time.Minute)
		require.ErrorContains(t, err, "connect to the master")
	})
}

// Its address may come to lead to the new master at any time.
func TestServerThatBecameAReplicaIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, other := newClient(t, s, rlock.Options{}), newClient(t, s, rlock.Options{})
	holds, waiters := make(map[string]*rlock.Hold), make(map[string]<-chan outcome)
	for _, k := range contests() {
		holds[k.name] = take(t, k.contender(c, k.name), time.Minute)
		waiters[k.name] = lockInBackground(t.Context(), k.lock(other, k.name), time.Minute)
		k.waitForListeners(t, s, k.name, 1)
	}
	befall(t, s, "has become a replica")
	late := make(map[string]<-chan outcome)
	for _, k := range contests() {
		_, err := k.lock(c, "another "+k.name).TryLock(t.Context(), rlock.NoWait, time.Minute)
		requireRefusal(t, err, "READONLY")
		require.ErrorContains(t, err, "rueidis.ClientOption.ConnLifetime")
		late[k.name] = lockInBackground(t.Context(), k.lock(c, "another "+k.name), time.Minute)
	}
	released := make(chan error, len(holds))
	for _, hold := range holds {
		go func() { released <- hold.Unlock(t.Context()) }()
	}
	s.Do(t, "REPLICAOF", "NO", "ONE")

	for range holds {
		require.NoError(t, receive(t, released, "not released"))
	}
	for _, k := range contests() {
		unlock(t, acquired(t, waiters[k.name]))
		unlock(t, acquired(t, late[k.name]))
	}
}

func TestKeyThatIsNoLockIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{WatchdogLease: 300 * time.Millisecond})
	onEveryKind(t, func(t *testing.T, k kind) {
		s.Do(t, "SET", "text", "precious")
		lock := k.lock(c, "text")

		requireRefusedAtOnce(t, lock, "WRONGTYPE")
		_, err := lock.ForceUnlock(t.Context())
		requireRefusal(t, err, "WRONGTYPE")
		_, err = lock.Info(t.Context())
		requireRefusal(t, err, "WRONGTYPE")
		_, err = lock.IsHeld(rlock.WithOwner(t.Context()))
		requireRefusal(t, err, "WRONGTYPE")
		require.Equal(t, "precious", s.DoString(t, "GET", "text"))

		s.Do(t, "HSET", "hash", "name", "Ada")
		_, err = k.lock(c, "hash").Info(t.Context())
		require.ErrorContains(t, err, "not a lock")
	})
}

func TestLockThatWasOverwrittenIsReportedAndLeftAlone(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{WatchdogLease: 6 * time.Second})
	explicit, renewed := make(map[string]*rlock.Hold), make(map[string]*rlock.Hold)
	var neighbours []*rlock.Hold
	for _, k := range kinds {
		explicit[k.name] = take(t, k.lock(c, "explicit "+k.name), time.Minute)
		renewed[k.name] = take(t, k.lock(c, "renewed "+k.name), rlock.Watchdog)
		neighbours = append(neighbours, take(t, k.lock(c, "neighbour "+k.name), rlock.Watchdog))
		s.Do(t, "SET", "explicit "+k.name, "precious")
		s.Do(t, "SET", "renewed "+k.name, "precious")
	}

	waitForRenewal(t, neighbours) // by the command that meets the overwritten key
	for _, k := range kinds {
		requireRefusal(t, explicit[k.name].Unlock(t.Context()), "WRONGTYPE")
		receive(t, renewed[k.name].Done(), "a lock that was overwritten was not lost")
		require.ErrorIs(t, renewed[k.name].Err(), rlock.ErrLost)
		require.Equal(t, []string{"precious", "precious"},
			s.DoStrings(t, "MGET", "explicit "+k.name, "renewed "+k.name))
	}
	for _, hold := range neighbours {
		unlock(t, hold)
	}
}
