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
