package rlock_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// orderCounter is the key of the counter of the lock called order.
const orderCounter = "redisson_lock_token:{order}"

// counted returns the value of the counter of the lock called order.
func counted(t testing.TB, s *redistest.Server) int64 {
	t.Helper()
	n, err := strconv.ParseInt(s.DoString(t, "GET", orderCounter), 10, 64)
	require.NoError(t, err)
	require.EqualValues(t, -1, s.DoInt(t, "PTTL", orderCounter), "the counter expires")
	return n
}

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

// Redisson counts each level.
func TestTokensIncreaseOverTheNestedHoldsOfAJavaPeer(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	lock := newClient(t, s, rlock.Options{}).NewFencedLock("order")
	unlock(t, take(t, lock, longLease))
	const java = "5d1ce8ac-4d0b-4e8e-a9a5-5d4c3c0e6a5b:31"
	for range 3 { // each level has a number
		s.Do(t, "HINCRBY", "order", java, "1")
		s.Do(t, "INCR", orderCounter)
	}
	_, err := lock.TryLock(t.Context(), rlock.NoWait, longLease)
	require.ErrorIs(t, err, rlock.ErrNotAcquired)
	s.Do(t, "DEL", "order")
	hold := take(t, lock, longLease)
	require.EqualValues(t, 5, hold.Token())
	s.Do(t, "INCR", orderCounter) // whatever this means, the hold keeps its token
	inner := takeWith(hold.Context(), t, lock, longLease)
	require.EqualValues(t, 5, inner.Token())
	unlock(t, inner)
	unlock(t, hold)
	require.EqualValues(t, 7, take(t, lock, longLease).Token())
}

func TestTokenIsKeptWhenTheReplyToTheAcquisitionIsLost(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, p := proxied(t, s, rlock.Options{})
	lock := c.NewFencedLock("order")
	unlock(t, take(t, lock, longLease))
	cut := p.CutReply(script(t, "fenced_acquire.lua"), 3)
	hold, err := lock.TryLock(t.Context(), longWait, longLease)
	require.NoError(t, err)
	require.Equal(t, 3, cut.Done())
	require.EqualValues(t, 2, hold.Token())
	require.EqualValues(t, 2, counted(t, s))
	unlock(t, hold)
	require.EqualValues(t, 3, take(t, lock, longLease).Token())
}

func TestTokenOfAnAcquisitionWhoseCallerLeftIsNotIssuedAgain(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, p := proxied(t, s, rlock.Options{})
	lock := c.NewFencedLock("order")
	unlock(t, take(t, lock, longLease))
	ctx, cancel := context.WithCancel(t.Context())
	p.HoldReplies()
	attempt := lockInBackground(ctx, lock, longLease)
	eventually(t, func() bool { return exists(s, "order") }, "not executed")
	cancel()
	require.ErrorIs(t, result(t, attempt).Err, context.Canceled)
	p.Pass()
	eventually(t, func() bool { return absent(s, "order") },
		"an acquisition that nobody knows of was left behind")
	require.EqualValues(t, 3, take(t, lock, longLease).Token())
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

func TestFencedLockWithoutExpiryOfAnotherIsNeverAcquired(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	lock := newClient(t, s, rlock.Options{}).NewFencedLock("order")
	s.Do(t, "SET", orderCounter, "7")
	s.Do(t, "HSET", "order", "another:1", "1")
	_, err := lock.TryLock(t.Context(), time.Second, longLease)
	held := new(rlock.HeldError)
	require.ErrorAs(t, err, &held)
	require.Equal(t, "another:1", held.Owner)
	require.Equal(t, rlock.NoExpiry, held.TTL)
	require.EqualValues(t, 7, counted(t, s), "a refusal was numbered")
	require.Equal(t, map[string]string{"another:1": "1"}, s.DoMap(t, "HGETALL", "order"))

	waiter := lockInBackground(t.Context(), lock, longLease)
	waitForListeners(t, s, "order", 1)
	s.Do(t, "DEL", "order")
	s.Do(t, "PUBLISH", channelOf("order"), "0")
	require.EqualValues(t, 8, acquired(t, waiter).Token())
}

func TestLocksOfOtherKindsHaveNoTokenAndTouchNoCounter(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{})
	fenced := c.NewFencedLock("order")
	for _, lock := range []*rlock.Lock{
		c.NewLock("order"), c.NewFairLock("order"),
		c.NewReadWriteLock("order").Read(), c.NewReadWriteLock("order").Write(),
	} {
		hold := take(t, lock, longLease)
		require.Zero(t, hold.Token())
		info, err := lock.Info(t.Context())
		require.NoError(t, err)
		require.Zero(t, info.Token)
		_, err = fenced.TryLock(t.Context(), rlock.NoWait, longLease)
		require.ErrorIs(t, err, rlock.ErrNotAcquired, "kinds exclude each other")
		unlock(t, hold)
		require.False(t, exists(s, orderCounter))
	}
	require.EqualValues(t, 1, take(t, fenced, longLease).Token())
}
