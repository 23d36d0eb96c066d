//go:build redis

package rlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

func TestTokenIncreasesWhateverEndedTheHoldBefore(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.WithAppendOnly())
	clients := []*rlock.Client{newClient(t, s, rlock.Options{}), newClient(t, s, rlock.Options{})}
	last := int64(0)
	for i, end := range []func(*rlock.Hold){
		func(h *rlock.Hold) { unlock(t, h) },
		func(h *rlock.Hold) {
			forced, err := clients[1].NewFencedLock("order").ForceUnlock(t.Context())
			require.NoError(t, err)
			require.True(t, forced)
		},
		func(h *rlock.Hold) { // the lease ends
			s.Do(t, "PEXPIRE", "order", "1")
			waitUntilFree(t, s, "order")
		},
		func(h *rlock.Hold) { // another program frees it
			s.Do(t, "DEL", "order")
		},
		func(h *rlock.Hold) {
			unlock(t, h)
			s.Restart(t)
		},
		func(h *rlock.Hold) {
			s.Restart(t)
			s.Do(t, "DEL", "order")
		},
		func(h *rlock.Hold) { unlock(t, h) },
	} {
		hold, err := clients[i%2].NewFencedLock("order").TryLock(t.Context(), longWait, longLease)
		require.NoError(t, err)
		require.Equal(t, last+1, hold.Token(), "after end %d", i)
		last = hold.Token()
		end(hold)
		require.Equal(t, last, counted(t, s), "after end %d", i)
		require.False(t, exists(s, "order"))
		require.Equal(t, last, hold.Token(), "the token of an ended hold")
	}
}

func TestTokenIsTheSameOnAllLevelsAndShownByInfo(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{WatchdogLease: 4 * time.Second})
	lock := c.NewFencedLock("order")
	info, err := lock.Info(t.Context())
	require.NoError(t, err)
	require.Equal(t, rlock.Info{Name: "order"}, info)

	unlock(t, take(t, lock, longLease))
	owner := rlock.WithOwner(t.Context())
	outer := takeWith(owner, t, lock, rlock.Watchdog)
	inner := takeWith(owner, t, lock, rlock.Watchdog)
	innermost := takeWith(owner, t, c.NewFencedLock("order"), rlock.Watchdog)
	require.Equal(t, []int64{2, 2, 2}, []int64{outer.Token(), inner.Token(), innermost.Token()})
	info, err = newClient(t, s, rlock.Options{}).NewFencedLock("order").Info(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 2, info.Token)
	require.Equal(t, 3, info.Count)
	require.Equal(t, outer.Owner(), info.Owner)

	unlock(t, outer) // out of order
	again := takeWith(owner, t, lock, rlock.Watchdog)
	require.EqualValues(t, 2, again.Token())
	before := inner.Deadline()
	eventually(t, func() bool { return inner.Deadline().After(before) }, "not renewed")
	require.EqualValues(t, 2, inner.Token())
	for _, level := range []*rlock.Hold{inner, again, innermost} {
		unlock(t, level)
	}
	require.EqualValues(t, 2, counted(t, s))
	info, err = lock.Info(t.Context())
	require.NoError(t, err)
	require.Equal(t, rlock.Info{Name: "order", Token: 2}, info)
}

func TestFencedLockWithoutACounterIsNotTakenAndAdvises(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare      func(*testing.T, *redistest.Server)
		code, advice string
	}{
		"not a number": {func(t *testing.T, s *redistest.Server) {
			s.Do(t, "SET", orderCounter, "a page")
		}, "ERR", orderCounter},
		"no string": {func(t *testing.T, s *redistest.Server) { s.Do(t, "SADD", orderCounter, "a") },
			"WRONGTYPE", orderCounter},
		"no memory": {func(t *testing.T, s *redistest.Server) {
			s.Do(t, "CONFIG", "SET", "maxmemory", "1")
		}, "OOM", "maxmemory"},
		"no permission for the key": {func(t *testing.T, s *redistest.Server) {
			restrict(t, s, "resetkeys", "~order")
		}, "NOPERM", "ACL"},
		"no permission for the command": {func(t *testing.T, s *redistest.Server) {
			restrict(t, s, "-incr")
		}, "NOPERM", "ACL"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			restrict(t, s)
			lock := newClient(t, s, rlock.Options{}, asUser).NewFencedLock("order")
			c.prepare(t, s)
			requireRefusedAtOnce(t, lock, c.code)
			_, err := lock.TryLock(t.Context(), rlock.NoWait, longLease)
			require.ErrorContains(t, err, c.advice)
			require.False(t, exists(s, "order"))
		})
	}
}
