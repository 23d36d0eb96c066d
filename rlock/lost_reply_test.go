package rlock_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/internal/transport"
	"holdfast/rlock"
)

func TestLostReplyOfAnAcquireCountsOnce(t *testing.T) {
	t.Parallel()
	onEveryKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		s := redistest.Start(t)
		c, p := proxied(t, s, rlock.Options{})
		k.warm(t, c, "order")
		cut := p.CutReply(script(t, k.acquire), 2)
		hold, err := k.lock(c, "order").TryLock(t.Context(), longWait, longLease)
		require.NoError(t, err)
		require.Equal(t, 2, cut.Done())
		require.Equal(t, k.hash(hold.Owner(), 1), counts(t, s))
		if k.fenced { // it is one acquisition, however often it was requested
			require.Equal(t, strconv.FormatInt(hold.Token(), 10),
				s.DoString(t, "GET", "redisson_lock_token:{order}"))
			require.EqualValues(t, 2, hold.Token())
		}
		unlock(t, hold)
		requireFree(t, s, "order")
	})
}

func TestLostReplyOfAnAttemptWithoutWaitIsUndone(t *testing.T) {
	t.Parallel()
	onEveryKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		s := redistest.Start(t)
		c, p := proxied(t, s, rlock.Options{})
		k.warm(t, c, "order")
		cut := p.CutReply(script(t, k.acquire), 1000)
		_, err := k.lock(c, "order").TryLock(t.Context(), rlock.NoWait, longLease)
		require.ErrorIs(t, err, rlock.ErrOutcomeUnknown)
		require.NotErrorIs(t, err, rlock.ErrNotAcquired)
		require.GreaterOrEqual(t, cut.Done(), transport.MostSends)
		waitUntilFree(t, s, "order") // an acquisition without a caller
	})
}

func TestLostReplyOfANestedLockCountsOnce(t *testing.T) {
	t.Parallel()
	onEveryKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		s := redistest.Start(t)
		c, p := proxied(t, s, rlock.Options{})
		k.warm(t, c, "order")
		hold := take(t, k.lock(c, "order"), longLease)
		cut := p.CutReply(script(t, k.reenter), 2)
		inner, err := k.lock(c, "order").TryLock(hold.Context(), longWait, longLease)
		require.NoError(t, err)
		require.Equal(t, 2, cut.Done())
		require.Equal(t, k.hash(hold.Owner(), 2), counts(t, s))

		// A nested lock whose replies are all lost adds a level in Redis that no hold stands for,
		// one however often it is sent. The next one and the last release ignore it.
		cut = p.CutReply(script(t, k.reenter), 1000)
		_, err = k.lock(c, "order").TryLock(hold.Context(), rlock.NoWait, longLease)
		require.ErrorIs(t, err, rlock.ErrOutcomeUnknown)
		require.GreaterOrEqual(t, cut.Done(), transport.MostSends)
		cut.End()
		require.Equal(t, k.hash(hold.Owner(), 3), counts(t, s))
		again := takeWith(hold.Context(), t, k.lock(c, "order"), longLease)
		require.Equal(t, k.hash(hold.Owner(), 3), counts(t, s))
		for _, level := range []*rlock.Hold{again, inner, hold} {
			unlock(t, level)
		}
		requireFree(t, s, "order")
	})
}

func TestReleaseWhoseReplyIsLostIsARelease(t *testing.T) {
	t.Parallel()
	onEveryKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		s := redistest.Start(t)
		c, p := proxied(t, s, rlock.Options{})
		k.warm(t, c, "order")
		hold := take(t, k.lock(c, "order"), longLease)
		inner := takeWith(hold.Context(), t, k.lock(c, "order"), longLease)
		cut := p.CutReply(script(t, k.lowers()), 2)
		unlock(t, inner)
		require.Equal(t, 2, cut.Done())
		require.True(t, hold.Valid())
		require.Equal(t, k.hash(hold.Owner(), 1), counts(t, s))
		cut = p.CutReply(script(t, k.release), 2)
		unlock(t, hold)
		require.Equal(t, 2, cut.Done())
		requireFree(t, s, "order")
	})
}

func TestAcquireWhoseCallerLeftIsReleasedWhenItsReplyIsLost(t *testing.T) {
	t.Parallel()
	onEveryKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		s := redistest.Start(t)
		c, p := proxied(t, s, rlock.Options{})
		k.warm(t, c, "order")
		ctx, cancel := context.WithCancel(t.Context())
		p.HoldReplies()
		attempt := lockInBackground(ctx, k.lock(c, "order"), longLease)
		eventually(t, func() bool { return exists(s, "order") }, "not executed")
		cancel()
		require.ErrorIs(t, result(t, attempt).Err, context.Canceled)
		p.Reset()
		p.Pass()
		waitUntilFree(t, s, "order") // an acquisition without a caller
	})
}
