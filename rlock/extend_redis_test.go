//go:build redis

package rlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
	"holdfast/watchdog"
)

// An extension is for the lock, not for its level: it lasts until the last level is released, in
// whatever order.
func TestExtendOfOneLevelLastsForAll(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{})
	onEveryKind(t, func(t *testing.T, k kind) {
		for extended := range 3 {
			for released := range 3 {
				var levels []*rlock.Hold
				ctx := rlock.WithOwner(t.Context())
				for range 3 {
					levels = append(levels, takeWith(ctx, t, k.lock(c, k.name), 5*time.Second))
				}
				owner := levels[0].Owner()
				require.NoError(t, levels[extended].Extend(t.Context(), time.Minute))
				require.Equal(t, k.hash(owner, 3), s.DoMap(t, "HGETALL", k.name))
				for i := range levels {
					level := levels[(released+i)%3]
					require.Greater(t, time.Until(level.Deadline()), 50*time.Second)
					require.Greater(t, k.lasts(t, s, k.name, owner), int64(50_000),
						"%d extended, %d released", extended, i)
					unlock(t, level)
				}
				requireFree(t, s, k.name)
			}
		}
	})
}

func TestExtendOfALockWhoseLeaseIsOverReturnsErrLost(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	withoutNesting(t, func(t *testing.T, k kind) {
		hold := take(t, k.lock(newClient(t, s, rlock.Options{}), k.name), time.Second)
		receive(t, hold.Done(), "the lease does not end")
		require.ErrorIs(t, hold.Extend(t.Context(), longLease), watchdog.ErrExpired)
		waitUntilFree(t, s, k.name)
	})
}

func TestExtendThatIsRefusedChangesNothing(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{})
	onEveryKind(t, func(t *testing.T, k kind) {
		hold := take(t, k.lock(c, k.name), time.Minute)
		deadline := hold.Deadline()
		s.Do(t, "ACL", "SETUSER", "default", "-@scripting")
		start := time.Now()
		err := hold.Extend(t.Context(), longLease)
		require.Less(t, time.Since(start), promptly)
		var refusal *rlock.ServerError
		require.ErrorAs(t, err, &refusal)
		require.Equal(t, "NOPERM", refusal.Code)
		require.ErrorContains(t, err, k.name)
		require.True(t, hold.Valid())
		require.Equal(t, deadline, hold.Deadline())
		s.Do(t, "ACL", "SETUSER", "default", "+@all")
		unlock(t, hold)
		requireFree(t, s, k.name)
	})
}

func TestExtendOnAHungServerReturnsInTime(t *testing.T) {
	t.Parallel()
	onEveryKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		s := redistest.Start(t)
		c := newClient(t, s, rlock.Options{CommandTimeout: shortTimeout})
		k.warm(t, c, "order")
		hold := take(t, k.lock(c, "order"), time.Minute)
		deadline := hold.Deadline()
		patient := newClient(t, s, rlock.Options{CommandTimeout: longWait})
		another := take(t, k.lock(patient, "another"), time.Minute)
		s.Pause(t)
		within(t, shortTimeout+promptly, func() {
			requireNoReply(t, hold.Extend(t.Context(), longLease))
		})
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		within(t, promptly, func() {
			require.ErrorIs(t, another.Extend(ctx, longLease), context.DeadlineExceeded)
		})
		require.True(t, another.Valid())
		require.True(t, hold.Valid())
		require.Equal(t, deadline, hold.Deadline(), "the extension is unconfirmed")
		s.Resume(t)
		eventually(t, func() bool { return hold.Extend(t.Context(), longLease) == nil }, "extended")
		require.Greater(t, time.Until(hold.Deadline()), longLease/2)
		unlock(t, hold)
		requireFree(t, s, "order")
		unlock(t, another)
	})
}

// The server executes it when it resumes. By then the hold is over, and nothing else would release
// the extended lock.
func TestExtendThatIsExecutedAfterTheHoldWasLostIsUndone(t *testing.T) {
	t.Parallel()
	onEveryKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		s := redistest.Start(t)
		c, p := proxied(t, s, rlock.Options{CommandTimeout: shortTimeout})
		k.warm(t, c, "order")
		hold := take(t, k.lock(c, "order"), 2*time.Second)
		p.HoldReplies()
		requireNoReply(t, hold.Extend(t.Context(), longLease))
		require.Greater(t, k.lasts(t, s, "order", hold.Owner()), int64(60_000))
		receive(t, hold.Done(), "the lease does not end")
		require.ErrorIs(t, hold.Err(), rlock.ErrLost)
		p.Pass()
		waitUntilFree(t, s, "order")
	})
}

// Redis did what it was asked, but its reply comes after the hold was given up: the lock was lost
// all the same.
func TestExtendWhoseReplyComesAfterTheLossReturnsErrLost(t *testing.T) {
	t.Parallel()
	onEveryKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		s := redistest.Start(t)
		c, p := proxied(t, s, rlock.Options{CommandTimeout: longWait})
		k.warm(t, c, "order")
		hold := take(t, k.lock(c, "order"), time.Second)
		p.HoldReplies()
		extended := make(chan error, 1)
		go func() { extended <- hold.Extend(t.Context(), longLease) }()
		receive(t, hold.Done(), "the lease does not end")
		p.Pass()
		require.ErrorIs(t, receive(t, extended, "Extend has not returned"), rlock.ErrLost)
		waitUntilFree(t, s, "order")
	})
}
