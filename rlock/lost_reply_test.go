package rlock_test

import (
	"context"
	"strconv"
	"testing"
	"time"

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

func TestRenewalIsRetriedAfterALostReply(t *testing.T) {
	t.Parallel()
	onEveryKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		s := redistest.Start(t)
		const lease = 6 * time.Second
		c, p := proxied(t, s, rlock.Options{WatchdogLease: lease})
		hold := take(t, k.lock(c, "order"), rlock.Watchdog)
		inner := takeWith(hold.Context(), t, k.lock(c, "order"), rlock.Watchdog)
		before := hold.Deadline()
		eventually(t, func() bool { return hold.Deadline().After(before) },
			"never renewed: the script is not known yet")
		cut := p.CutReply(script(t, k.renew), 3)
		eventually(t, func() bool { return cut.Done() == 3 }, "no renewal was tried again")
		after := hold.Deadline()
		eventually(t, func() bool { return hold.Deadline().After(after) || hold.Err() != nil },
			"not renewed")
		require.NoError(t, hold.Err())
		require.Equal(t, k.hash(hold.Owner(), 2), counts(t, s))
		unlock(t, inner)
		unlock(t, hold)
		requireFree(t, s, "order")
	})
}

func TestReleaseWhoseRepliesAreAllLostIsFreeAtOnce(t *testing.T) {
	t.Parallel()
	onEveryKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		s := redistest.Start(t)
		c, p := proxied(t, s, rlock.Options{CommandTimeout: shortTimeout})
		k.warm(t, c, "order")
		hold := take(t, k.lock(c, "order"), longLease)
		p.CutReply(script(t, k.release), 1000)
		within(t, shortTimeout+promptly, func() {
			require.ErrorIs(t, hold.Unlock(t.Context()), rlock.ErrOutcomeUnknown)
		})
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

// When the server resumes it executes what is in its buffers, however old that is: the lease begins
// then.
func TestAcquireExecutedAfterItsLeaseIsReleased(t *testing.T) {
	t.Parallel()
	onEveryKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		const lease = 4 * time.Second
		s := redistest.Start(t)
		c := newClient(t, s, rlock.Options{}, redistest.OneConnection)
		k.warm(t, c, "order")
		s.Pause(t)
		_, err := k.lock(c, "order").TryLock(t.Context(), 100*time.Millisecond, lease)
		require.ErrorIs(t, err, rlock.ErrOutcomeUnknown)
		<-time.After(lease)
		s.Resume(t)
		resumed := time.Now()
		waitUntilFree(t, s, "order")
		require.Less(t, time.Since(resumed), lease/2)
	})
}

func TestAcquireWhoseReplyComesAfterItsLeaseIsNotTrusted(t *testing.T) {
	t.Parallel()
	onEveryKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		const lease = 2 * time.Second
		s := redistest.Start(t)
		c, p := proxied(t, s, rlock.Options{})
		k.warm(t, c, "order")
		p.HoldReplies()
		attempt := lockInBackground(t.Context(), k.lock(c, "order"), lease)
		eventually(t, func() bool { return exists(s, "order") }, "not executed")
		<-time.After(lease)
		replied := time.Now()
		p.Pass()
		hold := acquired(t, attempt)
		require.Greater(t, hold.Deadline().Sub(replied), lease/2,
			"the deadline counts from the first try")
		require.Equal(t, k.hash(hold.Owner(), 1), counts(t, s))
		unlock(t, hold)
	})
}
